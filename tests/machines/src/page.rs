//! Commands of a page of the documentation, run as they stand there.

use std::path::Path;

use anyhow::{Result, ensure};
use tokio::process::Command;

/// The only block of a kind (the word behind its fence) on a page.
///
/// # Errors
/// When there is none, or more than one.
pub fn block(page: &str, kind: &str) -> Result<String> {
    let all = page.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let found: Vec<&str> = all.filter(|(of, _)| *of == kind).map(|(_, block)| block).collect();
    ensure!(found.len() == 1, "the page has {} blocks \"{kind}\"", found.len());
    Ok(found[0].to_owned())
}

/// Run commands in this directory; the first that fails is the error.
///
/// # Errors
/// See above.
pub async fn shell(dir: &Path, commands: &str) -> Result<()> {
    let output = Command::new("/bin/sh").args(["-exc", commands]).current_dir(dir).output().await?;
    ensure!(output.status.success(), "{commands}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
