//! Loop devices to be erased, over files of the bench's own.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Disks. Loop devices made here are detached, and their files gone, when dropped.
#[derive(Debug)]
pub struct Disks {
    /// Their device nodes.
    pub nodes: Vec<PathBuf>,
    /// Bytes of each.
    pub size: u64,
    /// Where the files of loop devices are.
    files: Option<tempfile::TempDir>,
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
        Self::make(dir, count, size, |file| fill(file, size))
    }

    /// The same, of sparse files that take no room until they are written.
    ///
    /// # Errors
    /// When a file or a device cannot be made.
    pub fn sparse(dir: &Path, count: usize, size: u64) -> Result<Self> {
        Self::make(dir, count, size, |file| Ok(file.set_len(size)?))
    }

    /// Disks that are there, written once from end to end.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn given(nodes: Vec<PathBuf>, size: u64) -> Result<Self> {
        for node in &nodes {
            let file = File::options().write(true).open(node);
            fill(&mut file.with_context(|| format!("{}", node.display()))?, size)?;
        }
        Ok(Self { nodes, size, files: None })
    }

    fn make(dir: &Path, count: usize, size: u64, fill: impl Fn(&mut File) -> Result<()>) -> Result<Self> {
        let files = tempfile::Builder::new().prefix("anneal-bench-erase-").tempdir_in(dir)?;
        let home = files.path().to_owned();
        let mut disks = Disks { nodes: Vec::new(), size, files: Some(files) };
        for number in 0..count {
            let path = home.join(format!("disk{number}"));
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

fn fill(file: &mut File, size: u64) -> Result<()> {
    let mut left = size;
    while left > 0 {
        let part = left.min(PATTERN.len() as u64);
        file.write_all(&PATTERN[..usize::try_from(part)?])?;
        left -= part;
    }
    Ok(file.sync_all()?)
}

impl Drop for Disks {
    fn drop(&mut self) {
        if self.files.is_none() {
            return;
        }
        for node in &self.nodes {
            let detached = Command::new("losetup").arg("--detach").arg(node).status();
            if !detached.as_ref().is_ok_and(std::process::ExitStatus::success) {
                eprintln!("bench: {} is still attached: {detached:?}", node.display());
            }
        }
    }
}
