//! `anneal-controller` with its fault points compiled in, for `tests/kill`: next to the real one, never instead of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use fs_err as fs;

use crate::sh;

/// What cargo is to build, before [`keep`]. Of the workspace, as everywhere, lest its dependencies are built twice.
pub const BUILD: [&str; 6] =
    ["build", "--workspace", "--bin", "anneal-controller", "--features", "controllerd/fault-points"];

/// What kills it.
pub const BUILD_KILL: [&str; 4] = ["build", "--workspace", "--bin", "kill"];

/// Builds it, then the program that kills it; where both are. A task that needs the real one builds it again.
pub fn build() -> Result<(PathBuf, PathBuf)> {
    let debug = sh::target_dir().join("debug");
    sh::run(sh::cargo().args(BUILD))?;
    let program = keep(&debug)?;
    sh::run(sh::cargo().args(BUILD_KILL))?;
    Ok((program, debug.join("kill")))
}

/// Copies what [`BUILD`] has made out of the place of the real one.
pub fn keep(debug: &Path) -> Result<PathBuf> {
    let (from, dir) = (debug.join("anneal-controller"), debug.join("fault-points"));
    let kept = dir.join("anneal-controller");
    fs::create_dir_all(&dir)?;
    fs::copy(&from, &kept)?;
    Ok(kept)
}

/// The command that kills it; options follow.
pub fn kill(program: &Path, kill: &Path) -> Command {
    let mut command = Command::new(kill);
    command.arg("--program").arg(program);
    command
}
