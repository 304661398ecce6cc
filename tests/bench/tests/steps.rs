//! The simulator in small, against the real controller: that it is right, not how fast.

use anyhow::Result;
use bench::build;
use bench::controller::Controller;
use bench::report::{Report, Side};
use bench::round::{self, Shape};
use room::Kind;
use std::time::Duration;

/// Every step runs exactly once, in its order, and every node becomes available: the round itself fails
/// otherwise. With TLS, as real agents have it.
#[test]
fn five_agents_run_three_steps_each_exactly_once_and_in_order() -> Result<()> {
    let program = build::controller()?;
    let dir = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let anneal = Controller::anneal(&runtime, &program, dir.path(), true)?;
    let shape = |kind, agents, steps| {
        let limit = Duration::from_secs(120);
        Shape { kind, agents, steps, tls: true, limit }
    };
    let fleet = runtime.block_on(round::run(&anneal, shape(Kind::Anneal, 5, 3)))?;
    assert_eq!((fleet.agents, fleet.steps, fleet.gap.count), (5, 3, 10));
    assert!(fleet.heartbeats >= 5 && fleet.refused == 0, "{fleet:?}");
    assert!(fleet.last_step_s <= fleet.available_s);

    // The same controller serves the next round, and what was measured can be reported.
    let sequence = runtime.block_on(round::run(&anneal, shape(Kind::Anneal, 1, 4)))?;
    assert_eq!((sequence.gap.count, sequence.refused), (3, 0));
    let of_others = runtime.block_on(round::run(&anneal, shape(Kind::Ipa, 3, 3)))?;
    assert_eq!((of_others.gap.count, of_others.refused), (6, 0));
    let mut report = Report::begin(dir.path(), true, Kind::Anneal)?;
    report.sides.push(Side { controller: anneal.name.clone(), sequence, fleet });
    let path = dir.path().join("report.json");
    report.write(&path)?;
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    assert_eq!(report["sides"][0]["fleet"]["gap"]["count"], 10, "{report}");
    assert!(report.to_string().contains("anneal"), "{report}");
    Ok(())
}
