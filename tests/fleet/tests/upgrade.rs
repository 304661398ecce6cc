//! A rolling upgrade with 24 nodes from one build to itself, with a change of the schema: the long form of
//! `cargo xtask soak --part upgrade` in small. Needs root, for namespaces.

use anyhow::Result;
use fleet::upgrade::{Shape, run};

#[test]
fn nodes_arrive_while_all_controllers_are_replaced() -> Result<()> {
    let program = bench::build::controller()?;
    let outcome = run(&Shape { old: &program, new: &program, nodes: 24, seed: 18 })?;
    println!("{outcome}");
    assert!(outcome.violations().is_empty(), "{outcome}");
    let [before, after] = outcome.schema;
    assert!(outcome.is_made_up && after == before + 1, "{outcome}");
    assert_eq!(outcome.replaced.len(), 3, "{outcome}");
    Ok(())
}
