//! The measurement of the API in small, against the real controller: that it is right, not how fast.

use anyhow::Result;
use bench::{api, build};
use std::path::Path;
use std::time::Duration;

/// Every list shows every node once, every answer has the status that it must have, what was created is counted, and what was
/// changed and heard is stored: the run itself fails otherwise.
#[test]
fn two_hundred_nodes_are_listed_read_changed_and_heard() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let place = api::Place {
        controller: &build::controller()?,
        node_cache_mib: None,
        bench: Path::new(env!("CARGO_BIN_EXE_bench")),
        filled: dir.path(),
        peers: None,
        scratch: dir.path(),
    };
    let shape = api::Shape { nodes: 200, few: 50, agents: 80, span: Duration::from_millis(200) };
    let report = api::run(place, &shape)?;
    assert_eq!(report.rows.len(), 18, "{report}");
    let loads = report.rows.iter().filter_map(|row| row.load.as_ref());
    assert!(
        loads.clone().all(|load| load.count > 0 && load.p50_ms <= load.p99_ms && load.p99_ms <= load.max_ms),
        "{report}"
    );
    assert_eq!(loads.count(), 12, "{report}");
    let lists = api::lists::for_long(place, &shape, Duration::from_millis(500))?;
    assert_eq!(lists.rows.len(), 6, "{lists}");
    assert!(lists.rows.iter().all(|row| row.value > 1.0), "{lists}");
    let path = dir.path().join("report.json");
    report.write(&path)?;
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    assert_eq!(report["nodes"], serde_json::json!([200, 50, 80]), "{report}");
    Ok(())
}
