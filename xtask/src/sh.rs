//! Running other programs, with errors that name the command.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Cargo's target directory: `CARGO_TARGET_DIR` or `target` at the root.
pub fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// A cargo command at the root, with the toolchain that runs this task.
///
/// It does not inherit what cargo sets for the package of this task: ring's build script looks at it, and all that
/// depends on ring would be built again for each package from which cargo is called.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command.current_dir(root());
    command
}

/// A program that an ordinary user's `PATH` may not have: Debian keeps it in `/usr/sbin`.
pub fn admin_tool(name: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(name);
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

/// Runs a command with its output shown; any exit but 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// Runs a command and returns its standard output; its errors are shown.
pub fn output(command: &mut Command) -> Result<String> {
    let out =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {command:?}"))?;
    if !out.status.success() {
        bail!("{command:?} ended with {}", out.status);
    }
    String::from_utf8(out.stdout).with_context(|| format!("output of {command:?} is not UTF-8"))
}

/// True when the command could be started and ended with 0; its output is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// SHA-256 of some bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}
