//! Namespaces of the test's own: mounts, ports and processes of it are shared with no other, and end with it.

use anyhow::{Context, Result};
use contract::process::check;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Set in the environment of what runs inside.
const INSIDE: &str = "ANNEAL_PACKAGES_INSIDE";

/// Starts this program again in new namespaces, in the place of this process, unless it is there already.
///
/// # Errors
/// When the namespaces cannot be made.
pub fn enter() -> Result<()> {
    if std::env::var_os(INSIDE).is_some() {
        // The ports of the packaged configuration are free here.
        check(Command::new("ip").args(["link", "set", "lo", "up"]))?;
        return Ok(());
    }
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    inside.arg(std::env::current_exe()?).args(std::env::args_os().skip(1)).env(INSIDE, "1");
    Err(inside.exec()).context("unshare")
}
