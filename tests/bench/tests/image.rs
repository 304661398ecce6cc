//! Images in small, from the server to a loop device: that what is on the device is right, not how fast. Needs root.

use anyhow::Result;
use bench::image::content::KINDS;
use bench::image::{self, Shape};
use std::path::Path;

/// Every kind of file is on the device byte for byte: the run itself fails otherwise.
#[test]
fn every_kind_of_file_is_on_the_device_as_the_image_has_it() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let shape = Shape { size: 24 << 20, seed: 5, rounds: 1 };
    let report = image::run(Path::new(env!("CARGO_BIN_EXE_bench")), dir.path(), None, shape)?;
    let names: Vec<_> = report.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, KINDS.map(|kind| kind.name));
    assert_eq!(report.rows[0].length, 24 << 20);
    assert!(report.rows[1..].iter().all(|row| row.length < 20 << 20), "{report}");
    let path = dir.path().join("report.json");
    report.write(&path)?;
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    assert_eq!(report["rows"][6]["name"], "qcow2, zstd", "{report}");
    Ok(())
}
