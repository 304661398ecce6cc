//! Disk content: partition tables, signatures and LVM metadata as the probe reads them, from a disk of 1 MiB.

use crate::oracle::Tape;
use block::{Disk, judge, probe};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

const SIZE: u64 = 1 << 20;

/// Reads one input; panics when a promise does not hold.
pub fn run(input: &[u8]) {
    let file = File::from(memfd_create("disk", MFdFlags::empty()).expect("a memfd"));
    file.set_len(SIZE).expect("a size");
    let mut tape = Tape(input);
    let big_sectors = tape.byte().is_some_and(|byte| byte & 1 == 1);
    // Pieces, each at a sector from the beginning or, beyond the middle, from the end.
    while let (Some(sector), Some(within)) = (tape.word(), tape.byte()) {
        let offset = (u64::from(sector) * 512 + u64::from(within) * 2) % SIZE;
        let Some(piece) = tape.piece() else { break };
        let room = usize::try_from(SIZE - offset).unwrap_or(0);
        file.write_all_at(&piece[..piece.len().min(room)], offset).expect("written");
    }
    let disk = Disk {
        name: "fuzz".to_owned(),
        path: format!("/proc/self/fd/{}", file.as_raw_fd()).into(),
        size: SIZE,
        logical_block: if big_sectors { 4096 } else { 512 },
        ..Disk::default()
    };
    if let Ok(probe) = probe(&disk) {
        let _ = judge(&probe);
        for (start, size) in probe.signatures.iter().map(|signature| signature.range) {
            assert!(
                start.checked_add(size).is_some_and(|end| end <= SIZE),
                "{start}+{size} is not on the disk"
            );
        }
    }
}
