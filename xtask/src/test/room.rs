//! Room on the disk: a run that ends in the middle because a disk is full says so late, and in many ways.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::sh;

/// MiB that a clean build takes of the target directory, measured and rounded up.
const BUILD: u64 = 9 << 10;
/// MiB that the tests take of the directory for temporary files at most, disks of nodes included, measured and rounded up.
const SCRATCH: u64 = 3 << 10;

/// Fails where a clean build, or the tests after it, would fill a disk.
pub fn ensure() -> Result<()> {
    let target = sh::target_dir();
    let built = target.join("debug").exists();
    let target = (target.ancestors().find(|dir| dir.exists()).map(Path::to_owned).unwrap_or_default(), BUILD);
    let scratch = (std::env::temp_dir(), SCRATCH);
    let wanted = if built { vec![scratch] } else { vec![target, scratch] };
    for (index, (dir, _)) in wanted.iter().enumerate() {
        let (disk, free) = free(dir)?;
        let same = |(other, _): &&(PathBuf, u64)| self::free(other).is_ok_and(|(other, _)| other == disk);
        let needed: u64 = wanted[index..].iter().filter(same).map(|(_, needed)| needed).sum();
        if free < needed {
            let dir = dir.display();
            bail!("{free} MiB are free below {dir} ({disk}), and the tests need {needed}: make room there");
        }
    }
    Ok(())
}

/// The file system of a directory, by where it is mounted, and the MiB that are free on it.
fn free(dir: &Path) -> Result<(String, u64)> {
    let told = sh::output(Command::new("df").args(["--block-size=1M", "--output=avail,target"]).arg(dir))?;
    parse(&told).with_context(|| format!("what df tells of {}: {told:?}", dir.display()))
}

fn parse(told: &str) -> Option<(String, u64)> {
    let (free, mounted) = told.lines().nth(1)?.trim().split_once(' ')?;
    Some((mounted.trim().to_owned(), free.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn what_df_tells_is_read() {
        let told = "Avail Mounted on\n63210 /\n";
        assert_eq!(parse(told), Some(("/".to_owned(), 63210)));
        assert_eq!(parse("Avail Mounted on\n"), None);
        assert_eq!(parse("Avail Mounted on\n- /proc\n"), None);
    }
}
