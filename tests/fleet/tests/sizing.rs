//! The measurement in small, with an unoptimized controller: that every node arrives, with and without faults.

use anyhow::Result;
use fleet::behaviour::Behaviour;
use fleet::sizing::{Shape, run};
use std::time::Duration;

fn measured(behaviour: &str, nodes: u32) -> Result<fleet::sizing::Report> {
    let shape = Shape {
        program: bench::build::controller()?,
        nodes,
        behaviour: Behaviour::parse(behaviour)?,
        seed: 18,
        limit: Duration::from_secs(240),
    };
    let dir = tempfile::tempdir()?;
    let runtime = hostile::threads::runtime()?;
    let report = runtime.block_on(run(&shape, dir.path()));
    runtime.shutdown_background();
    report
}

#[test]
fn forty_nodes_are_enrolled_inspected_cleaned_and_available() -> Result<()> {
    let report = measured("", 40)?;
    println!("{report}");
    assert_eq!(report.phases.len(), 4);
    assert!(report.pages > 10 && report.processor_ms() > 0.0 && report.most_resident > 1 << 20, "{report}");
    Ok(())
}

#[test]
fn nodes_arrive_in_spite_of_slow_and_failing_bmcs_and_lost_heartbeats() -> Result<()> {
    let faults = "[bmc]\ndelay_ms = [50, 500]\nerror_rate = 0.05\n[agent]\nlost_heartbeats = 0.1\n";
    let report = measured(faults, 20)?;
    println!("{report}");
    Ok(())
}
