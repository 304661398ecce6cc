//! One round of each kind with 200 nodes: a controller of three is killed, frozen, cut off. Needs root, for namespaces.

use anyhow::Result;
use fleet::rounds::{Shape, run};

#[test]
fn nodes_arrive_whichever_controller_is_killed_frozen_or_cut_off() -> Result<()> {
    let shape = Shape { nodes: 200, rounds: 3, seed: 18 };
    let outcomes = run(&bench::build::controller()?, &shape)?;
    assert_eq!(outcomes.len(), 4, "one undisturbed and three disturbed");
    for outcome in &outcomes {
        assert!(outcome.verdict.violations.is_empty(), "{outcome}\n{:#?}", outcome.verdict.violations);
        assert!(outcome.verdict.commands > 200 && outcome.verdict.calls > 200, "{outcome}");
    }
    for outcome in &outcomes[1..] {
        assert!(outcome.verdict.bereft > 0, "{outcome}");
    }
    Ok(())
}
