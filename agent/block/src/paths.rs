//! Several paths to one disk: held together, and believed only when they show the same content.
//!
//! The paths were put together by what the disks say of themselves. Were that wrong, one disk would be erased
//! and its double left with its data.

use crate::aligned::Aligned;
use crate::disk::Disk;
use crate::list::Roots;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Places at which the content is compared, spread evenly.
const PLACES: u64 = 16;
/// Bytes compared at each.
const LENGTH: u64 = 64 * 1024;
/// How long a device may be held by what goes by itself, and how often it is tried meanwhile.
const MOMENT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// Open the other paths of a disk exclusively, so that nothing uses the disk over them meanwhile, and compare
/// what they show with `first`. Where that is a `map` it has them, and all paths are compared. `Err` inside says which
/// path differs and where.
pub(crate) fn hold(
    roots: &Roots,
    disk: &Disk,
    first: &File,
    map: bool,
) -> io::Result<Result<Vec<File>, String>> {
    let mut held = Vec::new();
    let own = map.then_some(&disk.name);
    for name in disk.other_paths.iter().chain(own) {
        let mut options = OpenOptions::new();
        let exclusive = if map { 0 } else { libc::O_EXCL };
        options.read(true).custom_flags(libc::O_DIRECT | exclusive);
        let other = open_exclusively(&options, &roots.dev.join(name))?;
        if let Some(offset) = difference(disk, first, &other)? {
            return Ok(Err(format!(
                "{name} has the same names but other content at byte offset {offset}, so it is another disk"
            )));
        }
        held.push(other);
    }
    Ok(Ok(held))
}

/// Open, and wait for what holds the device for a moment: a process that is just being confined has a copy of each mount
/// of this one, also of one that was taken down since.
pub(crate) fn open_exclusively(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let deadline = Instant::now() + MOMENT;
    loop {
        match options.open(path) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                std::thread::sleep(POLL);
            }
            opened => return opened,
        }
    }
}

/// The first place at which two paths differ.
fn difference(disk: &Disk, first: &File, other: &File) -> io::Result<Option<u64>> {
    let block = u64::from(disk.logical_block);
    let length = LENGTH.max(block).min(disk.size);
    let last = disk.size - length;
    for place in 0..=PLACES {
        let offset = last / PLACES * place / block * block;
        let offset = if place == PLACES { last } else { offset };
        let read = |file: &File| -> io::Result<Aligned> {
            let mut buffer = Aligned::new(usize::try_from(length).map_err(io::Error::other)?);
            file.read_exact_at(&mut buffer, offset)?;
            Ok(buffer)
        };
        if *read(first)? != *read(other)? {
            return Ok(Some(offset));
        }
    }
    Ok(None)
}
