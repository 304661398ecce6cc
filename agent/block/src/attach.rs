//! A file as a block device that can be mounted: a loop device, read-only, gone with its last user.

use crate::sys::loopdev;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Tries to get a device that others want too.
const TRIES: usize = 16;

/// A loop device. Its file is let go of when this is dropped and nothing is mounted from it.
#[derive(Debug)]
pub struct Attached {
    path: PathBuf,
    _device: File,
}

impl Attached {
    /// Its device node.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The first `size` bytes of `file`, a multiple of 512, as a block device. Needs root and the kernel's `loop`.
pub fn attach(file: &File, size: u64) -> io::Result<Attached> {
    let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
    let mut tries = 0;
    loop {
        let path = PathBuf::from(format!("/dev/loop{}", loopdev::free(&control)?));
        let device = OpenOptions::new().read(true).open(&path)?;
        match loopdev::configure(&device, file, size) {
            Ok(()) => return Ok(Attached { path, _device: device }),
            // Another process took the device first.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && tries < TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}
