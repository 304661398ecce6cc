//! `tests/kill`: the controller, which has fault points in a debug build, and the program that kills it at them.

use std::path::Path;
use std::process::Command;

/// What cargo is to build. Of the workspace, as everywhere, lest its dependencies are built twice.
pub const BUILD: [&str; 6] = ["build", "--workspace", "--bin", "anneal-controller", "--bin", "kill"];

/// The command that kills the controller of this directory; options follow.
pub fn command(bin_dir: &Path) -> Command {
    let mut command = Command::new(bin_dir.join("kill"));
    command.arg("--program").arg(bin_dir.join("anneal-controller"));
    command
}
