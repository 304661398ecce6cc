//! The measurement of virtual media in small, with an unoptimized controller and the image: that every node boots and every medium is out
//! again, not how fast.

use anyhow::Result;
use fleet::media::{Shape, run};
use std::path::Path;
use std::time::Duration;

#[test]
#[ignore = "needs the image"]
fn ten_nodes_boot_by_virtual_media_at_once() -> Result<()> {
    let shape = Shape {
        program: bench::build::controller()?,
        image: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../image/out"),
        nodes: 10,
        seed: 19,
        limit: Duration::from_secs(240),
    };
    let dir = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(run(&shape, dir.path()));
    runtime.shutdown_background();
    let report = report?;
    println!("{report}");
    assert!(report.beyond <= 500_000 && report.most < 128 << 20, "{report}");
    Ok(())
}
