//! Room on the disk: a run that ends in the middle because a disk is full says so late, and in many ways.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::sh;

/// MiB that a run from a clean clone takes: 7433 measured with the directory for temporary files on the same disk, the next
/// GiB is asked for.
const WHOLE: u64 = 8 << 10;

/// Fails where a run from a clean clone would fill the disk of the target directory.
pub fn ensure() -> Result<()> {
    let target = sh::target_dir();
    // Built by the run itself, unlike what `cargo xtask` needs to start.
    if target.join("debug/anneal-controller").exists() {
        return Ok(());
    }
    let there = target.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    let output = sh::output(Command::new("df").args(["--block-size=1M", "--output=avail"]).arg(there))?;
    judge(&output, there)
}

/// Compares the output of `df` for a directory with [`WHOLE`].
fn judge(output: &str, dir: &Path) -> Result<()> {
    let dir = dir.display();
    let free: Option<u64> = output.lines().nth(1).and_then(|line| line.trim().parse().ok());
    let free = free.with_context(|| format!("the output of df for {dir}: {output:?}"))?;
    ensure!(free >= WHOLE, "{free} MiB are free below {dir}, and the tests need {WHOLE}: make room there");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_room_is_named_with_what_is_missing() {
        let judged = |output: &str| judge(output, Path::new("/x"));
        assert!(judged("Avail\n 8192\n").is_ok());
        let full = judged("Avail\n 8191\n").unwrap_err().to_string();
        assert_eq!(full, "8191 MiB are free below /x, and the tests need 8192: make room there");
        for strange in ["", "Avail\n", "Avail\n-\n"] {
            assert!(
                judged(strange).unwrap_err().to_string().contains("the output of df for /x"),
                "{strange:?}"
            );
        }
    }
}
