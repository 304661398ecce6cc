//! The soak in small, with an unoptimized controller: that every node arrives, no lie is believed, the memory stays below its
//! bound, and comes back once the hostile clients have left. Rates and waits are goals of `cargo xtask soak --part hostile`.

use anyhow::Result;
use hostile::run::{Shape, run};
use hostile::threads;
use std::time::Duration;

#[test]
fn every_node_arrives_while_hostile_clients_use_every_port() -> Result<()> {
    let shape = Shape {
        program: bench::build::controller()?,
        pinned: false,
        peace: Duration::from_secs(8),
        lasts: Duration::from_secs(12),
        patience: Duration::from_secs(120),
        nodes: 50,
        liars: 6,
        silent: 16,
        requests_per_s: 300.0,
        held: 600,
        seed: 16,
    };
    let dir = tempfile::tempdir()?;
    let runtime = threads::runtime()?;
    let report = runtime.block_on(run(&shape, dir.path()))?;
    runtime.shutdown_background();
    println!("{report}");
    assert!(report.missed().is_empty(), "{:?}\n{report}", report.missed());
    assert!(report.answered > 500 && report.held.iter().sum::<usize>() > 0, "{report}");
    Ok(())
}
