//! The measurement of images in small, with an unoptimized controller: that every node gets every byte, not how fast.

use anyhow::Result;
use fleet::images::{Shape, run};
use std::time::Duration;

#[test]
fn twenty_nodes_get_one_image_at_once_byte_for_byte() -> Result<()> {
    let shape = Shape {
        program: bench::build::controller()?,
        nodes: 20,
        // Whole buffers, and a part of one.
        bytes: (12 << 20) + 4711,
        rounds: 2,
        seed: 18,
        limit: Duration::from_secs(240),
    };
    let dir = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(run(&shape, dir.path()));
    runtime.shutdown_background();
    let report = report?;
    println!("{report}");
    for served in &report.served {
        assert_eq!(served.rounds.len(), 2, "{report}");
        assert!(served.rounds.iter().all(|round| round.sendfile > 0.0 && round.controller > 0.0), "{report}");
        assert!(served.before > 1 << 20 && served.most >= served.before, "{report}");
    }
    Ok(())
}
