//! The directory of database, keys and token. Only the controller's user enters it.

use anyhow::{Context, Result};
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// What group and others may do.
const OTHERS: u32 = 0o077;

/// Make the directory (mode 0700) if it is missing. One that is there keeps its mode: it may be a directory that others
/// share; that is logged.
pub fn prepare(path: &Path) -> Result<()> {
    make(path).with_context(|| format!("state_dir {}", path.display()))?;
    let mode = path.metadata().with_context(|| format!("state_dir {}", path.display()))?.permissions().mode();
    if mode & OTHERS != 0 {
        tracing::warn!(
            "state_dir {} has mode {:04o}: other users can list it; its files are private, and mode 0700 is better",
            path.display(),
            mode & 0o7777
        );
    }
    Ok(())
}

/// Make a directory, and those above it, with mode 0700.
pub fn make(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_directory_is_private_and_an_old_one_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let new = dir.path().join("a/b");
        prepare(&new).unwrap();
        assert_eq!((mode(&new), mode(&dir.path().join("a"))), (0o700, 0o700));
        std::fs::set_permissions(&new, PermissionsExt::from_mode(0o755)).unwrap();
        prepare(&new).unwrap();
        assert_eq!(mode(&new), 0o755);
    }
}
