//! Programs of other packages that tests need.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the controller, as [`program`] does.
///
/// # Errors
/// When it cannot be built.
pub fn controller() -> Result<PathBuf> {
    program("anneal-controller")
}

/// Builds a program of the workspace next to the test that calls this: cargo builds no program of another package for a test, and
/// one that lay there might be an old one. Of the workspace, as `cargo xtask test` has built it.
///
/// # Errors
/// When it cannot be built.
pub fn program(name: &str) -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let target = this.ancestors().nth(3).context("tests run from target/debug/deps")?;
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Build scripts look at them, and would run again for the package of this test.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            build.env_remove(name);
        }
    }
    let status = build
        .args(["build", "--quiet", "--workspace", "--bin", name])
        .arg("--target-dir")
        .arg(target)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .status()?;
    ensure!(status.success(), "{name} cannot be built: {status}");
    Ok(target.join("debug").join(name))
}
