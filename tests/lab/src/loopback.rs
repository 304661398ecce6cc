//! A loop device of our own, for an agent outside of any ramdisk and for tools that take a disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Attached until dropped.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    /// Attaches a free loop device, with sectors of so many bytes, to a file.
    ///
    /// # Errors
    /// When we are not root, or there is none left.
    pub fn attach(file: &Path, sector: u32) -> Result<Self> {
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show", "--sector-size", &sector.to_string()]).arg(file);
        let out = losetup.output().context("cannot start losetup (mount)")?;
        ensure!(out.status.success(), "losetup: {}", String::from_utf8_lossy(&out.stderr).trim());
        Ok(Self { path: String::from_utf8(out.stdout)?.trim().into() })
    }

    /// Its device node.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let detached = Command::new("losetup").arg("--detach").arg(&self.path).status();
        if !detached.is_ok_and(|status| status.success()) {
            eprintln!("{} not detached", self.path.display());
        }
    }
}
