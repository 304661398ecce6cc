//! One round of each kind with 200 nodes: a controller of three is killed, frozen, cut off. Needs root, for namespaces.
//!
//! How late nodes arrive is printed, and judged by `cargo xtask soak --part fleet` alone: here other tests run at the same time, and
//! more of them in one round than in another.

use anyhow::Result;
use fleet::rounds::{Shape, run};

#[test]
fn nodes_arrive_whichever_controller_is_killed_frozen_or_cut_off() -> Result<()> {
    let shape = Shape { nodes: 200, rounds: 3, seed: 18 };
    let outcomes = run(&bench::build::controller()?, &shape)?;
    assert_eq!(outcomes.len(), 4, "one undisturbed and three disturbed");
    for outcome in &outcomes {
        let (late, wrong): (Vec<&String>, Vec<&String>) =
            outcome.verdict.violations.iter().partition(|violation| violation.contains(": late: "));
        println!("{outcome}\n{} nodes are late", late.len());
        assert!(wrong.is_empty(), "{outcome}\n{wrong:#?}");
        assert!(outcome.verdict.commands > 100 && outcome.verdict.calls > 100, "{outcome}");
    }
    for outcome in &outcomes[1..] {
        assert!(outcome.verdict.bereft > 0, "{outcome}");
    }
    Ok(())
}
