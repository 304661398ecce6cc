//! A loop device of our own, for an agent outside of any ramdisk.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

/// Attached until dropped.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    /// Attaches a free loop device to a file.
    ///
    /// # Errors
    /// When we are not root, or there is none left.
    pub async fn attach(file: &Path) -> Result<Self> {
        let out = Command::new("losetup").args(["--find", "--show"]).arg(file).output().await;
        let out = out.context("cannot start losetup (mount)")?;
        ensure!(out.status.success(), "losetup: {}", String::from_utf8_lossy(&out.stderr).trim());
        Ok(Self { path: String::from_utf8(out.stdout)?.trim().into() })
    }

    /// Its device node.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let detached = std::process::Command::new("losetup").arg("--detach").arg(&self.path).status();
        if !detached.is_ok_and(|status| status.success()) {
            eprintln!("{} not detached", self.path.display());
        }
    }
}
