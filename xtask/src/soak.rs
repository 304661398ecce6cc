//! `cargo xtask soak`: the simulation (`tests/sim`) for as long as one likes, or one seed of it told.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::sh;

/// All options are those of `sim`; see there.
pub fn run(words: Vec<String>) -> Result<()> {
    sh::run(sh::cargo().args(["build", "--package", "sim", "--bins"]))?;
    let sim = sh::target_dir().join("debug/sim");
    let status =
        Command::new(&sim).args(&words).status().with_context(|| format!("cannot start {}", sim.display()))?;
    if !status.success() {
        // What was broken has been told.
        bail!("the simulation ended with {status}");
    }
    Ok(())
}
