//! Loop devices to be erased, over files of the bench's own.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Loop devices; detached, and their files gone, when dropped.
#[derive(Debug)]
pub struct Disks {
    /// Their device nodes.
    pub nodes: Vec<PathBuf>,
    /// Bytes of each.
    pub size: u64,
    _files: tempfile::TempDir,
}

/// What is written to a new disk, over and over: no byte of it is zero.
static PATTERN: [u8; 1 << 20] = [0x5a; 1 << 20];

impl Disks {
    /// `count` disks of `size` bytes over files below `dir`, past the page cache of the file system where it can do
    /// that. Written once from end to end, so that no tool pays for the allocation of the files.
    ///
    /// # Errors
    /// When a file or a device cannot be made. It needs root.
    pub fn written(dir: &Path, count: usize, size: u64) -> Result<Self> {
        Self::make(dir, count, size, |file| {
            let mut left = size;
            while left > 0 {
                let part = left.min(PATTERN.len() as u64);
                file.write_all(&PATTERN[..usize::try_from(part)?])?;
                left -= part;
            }
            Ok(file.sync_all()?)
        })
    }

    /// The same, of sparse files that take no room until they are written.
    ///
    /// # Errors
    /// When a file or a device cannot be made.
    pub fn sparse(dir: &Path, count: usize, size: u64) -> Result<Self> {
        Self::make(dir, count, size, |file| Ok(file.set_len(size)?))
    }

    fn make(dir: &Path, count: usize, size: u64, fill: impl Fn(&mut File) -> Result<()>) -> Result<Self> {
        let files = tempfile::Builder::new().prefix("anneal-bench-erase-").tempdir_in(dir)?;
        let mut disks = Disks { nodes: Vec::new(), size, _files: files };
        for number in 0..count {
            let path = disks._files.path().join(format!("disk{number}"));
            let mut file = File::create(&path).with_context(|| format!("{}", path.display()))?;
            fill(&mut file).with_context(|| format!("cannot fill {}", path.display()))?;
            let output =
                Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(&path).output()?;
            if !output.status.success() {
                bail!("losetup {}: {}", path.display(), String::from_utf8_lossy(&output.stderr).trim());
            }
            disks.nodes.push(PathBuf::from(String::from_utf8(output.stdout)?.trim()));
        }
        Ok(disks)
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        for node in &self.nodes {
            let detached = Command::new("losetup").arg("--detach").arg(node).status();
            if !detached.as_ref().is_ok_and(std::process::ExitStatus::success) {
                eprintln!("bench: {} is still attached: {detached:?}", node.display());
            }
        }
    }
}
