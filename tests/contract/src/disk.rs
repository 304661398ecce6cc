//! A loop device full of data that can be recognised from outside.

use crate::process::check;
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of a device, unless another is asked for.
pub const SIZE: u64 = 64 << 20;
const BLOCK: usize = 4096;

/// A loop device over a file; detached when dropped.
#[derive(Debug)]
pub struct LoopDisk {
    /// `/dev/loop7`
    pub device: String,
    file: PathBuf,
    size: u64,
}

/// What is left of the old data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// Blocks of 4 KiB that are as they were.
    pub old_blocks: u64,
    /// Bytes other than zero.
    pub nonzero_bytes: u64,
}

/// The old content of block `number`: no byte of it is zero.
fn old_block(number: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let text = format!("contract block {number} ");
    for (byte, source) in block.iter_mut().zip(text.bytes().cycle()) {
        *byte = source;
    }
    block
}

impl LoopDisk {
    /// A device in `dir` with data in every block and a GPT over it.
    pub fn new(dir: &Path, name: &str) -> Result<Self> {
        Self::sized(dir, name, SIZE)
    }

    /// The same of `size` bytes, a whole number of MiB.
    pub fn sized(dir: &Path, name: &str, size: u64) -> Result<Self> {
        let file = dir.join(format!("{name}.img"));
        let mut writer = BufWriter::new(File::create(&file)?);
        for number in 0..size / BLOCK as u64 {
            writer.write_all(&old_block(number))?;
        }
        writer.into_inner().context("disk image")?.sync_all()?;
        check(
            Command::new("sgdisk").args(["--clear", "--new=1:2048:0", "--change-name=1:precious"]).arg(&file),
        )
        .context("a GPT for the disk image (Debian: apt install gdisk)")?;
        let output = check(Command::new("losetup").args(["--find", "--show"]).arg(&file))?;
        let device = String::from_utf8(output.stdout)?.trim().to_owned();
        let disk = Self { device, file, size };
        let left = disk.left()?;
        ensure!(left.old_blocks > size / BLOCK as u64 - 64, "the disk image holds its data: {left:?}");
        ensure!(disk.has_gpt()?, "the disk image has a GPT");
        Ok(disk)
    }

    /// What is left, read from the file below the device.
    pub fn left(&self) -> Result<Left> {
        self.flush()?;
        let mut file = File::open(&self.file)?;
        let mut left = Left { old_blocks: 0, nonzero_bytes: 0 };
        let mut block = [0; BLOCK];
        for number in 0..self.size / BLOCK as u64 {
            file.read_exact(&mut block)?;
            left.old_blocks += u64::from(block == old_block(number));
            left.nonzero_bytes += block.iter().filter(|byte| **byte != 0).count() as u64;
        }
        Ok(left)
    }

    /// Whether either header of the GPT is there (UEFI 2.10, 5.3.2): in the second and in the last sector.
    pub fn has_gpt(&self) -> Result<bool> {
        use std::os::unix::fs::FileExt;
        self.flush()?;
        let file = File::open(&self.file)?;
        let mut found = false;
        for offset in [512, self.size - 512] {
            let mut signature = [0; 8];
            file.read_exact_at(&mut signature, offset)?;
            found |= &signature == b"EFI PART";
        }
        Ok(found)
    }

    /// Fails unless every byte is zero.
    pub fn ensure_zero(&self) -> Result<()> {
        let left = self.left()?;
        ensure!(left == Left { old_blocks: 0, nonzero_bytes: 0 }, "{} is not zero: {left:?}", self.device);
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        check(Command::new("blockdev").args(["--flushbufs", &self.device]))?;
        Ok(())
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        // The partitions that parted makes known to the kernel outlive the device, and would be in the way of the next one.
        drop(Command::new("partx").args(["--delete", &self.device]).output());
        if let Err(error) = check(Command::new("losetup").args(["--detach", &self.device])) {
            eprintln!("{error:#}");
        }
    }
}
