//! The measurement in small, with an unoptimized controller: that each node is read within its period, and how often, not how fast.

use anyhow::Result;
use fleet::power::{Shape, run};
use std::time::Duration;

#[test]
fn the_power_state_of_each_node_is_read_within_its_period_by_redfish_and_as_often_as_it_can_by_ipmi()
-> Result<()> {
    let shape = Shape {
        program: bench::build::controller()?,
        nodes: 40,
        period_s: 4,
        redfish: 20,
        ipmi: 20,
        span: Duration::from_secs(1),
        seed: 18,
        limit: Duration::from_secs(120),
    };
    let dir = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(run(&shape, dir.path()));
    runtime.shutdown_background();
    let report = report?;
    println!("{report}");
    let gaps = &report.period.gaps;
    assert!(gaps.late_most_s > 0.0, "nodes are read again after their period: {report}");
    assert_eq!((gaps.read, gaps.unread), (40, 0), "{report}");
    assert_eq!(report.rates.len(), 2);
    for rate in &report.rates {
        assert!(rate.per_second > 0.0 && rate.limit > 0.0 && rate.processor_ms > 0.0, "{report}");
    }
    Ok(())
}
