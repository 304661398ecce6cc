//! Three controllers next to pgbench in small: that it is right, not how fast.

use anyhow::Result;
use bench::api::postgres::{Shape, run};
use bench::build;
use std::time::Duration;

/// Every answer has the status that it must have, and pgbench runs what was captured of each request without a failure: the run
/// itself fails otherwise.
#[test]
fn three_controllers_are_compared_with_pgbench_with_their_own_statements() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let shape = Shape { nodes: 60, controllers: 3, clients: 6, span: Duration::from_millis(300) };
    let report = run(&build::controller()?, dir.path(), shape)?;
    println!("{report}");
    assert_eq!(report.ratios.len(), 5, "{report}");
    assert!(report.ratios.iter().all(|one| one.load.count > 0 && one.next_to.1 > 0.0), "{report}");
    // Each begins and commits, and writes in between.
    assert!(report.statements.iter().all(|(_, lines)| *lines >= 5), "{report}");
    Ok(())
}
