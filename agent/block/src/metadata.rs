//! Erasing only what makes a disk look used: partition tables, and the signatures of file systems, LVM, md and
//! the like, on the disk and in each of its partitions.

use crate::aligned::{Aligned, ZEROES_LENGTH, zeroes};
use crate::erase::{Ending, ending};
use crate::fault::Fault;
use crate::method::ExpectedContent;
use crate::progress::{Phase, Progress, Watch};
use crate::signature::Signature;
use crate::target::{Target, read_exact, write_all};
use crate::verify::{Coverage, Verification};

/// Zeroed at both ends of the disk and of each partition, in bytes. Covers GPT and its backup for sectors up
/// to 16 KiB, all places of an md superblock (0.90 within the last 128 KiB, 1.0 within the last 12 KiB, 1.1 at
/// 0, 1.2 at 4 KiB), LVM labels (first four sectors), bcache (4 KiB), the four labels of ZFS (256 KiB each, two at
/// each end), and the anchors of DDF and IMSM (last sectors), from which all of their data is found.
const END: u64 = 1 << 20;

/// Copies that other tools look for and libblkid does not always: second headers of LUKS2 (up to 4 MiB) and VMFS (1 and
/// 2 MiB), btrfs superblocks (64 MiB, 256 GiB), Ceph BlueStore labels (1, 10, 100, 1000 GiB). 4 KiB each.
const COPIES: [u64; 9] =
    [1 << 20, 2 << 20, 4 << 20, 64 << 20, 256 << 30, 1 << 30, 10 << 30, 100 << 30, 1000 << 30];
const COPY: u64 = 4096;

/// More rounds than any real disk needs; each removes all signatures that libblkid finds.
const ROUNDS: usize = 32;

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataRecord {
    /// How it ended; [`Ending::Erased`] says that a probe afterwards found nothing.
    pub ending: Ending,
    /// Bytes overwritten with zeroes.
    pub bytes_erased: u64,
    /// Signatures found before, in words.
    pub removed: Vec<String>,
    /// What the probe afterwards saw.
    pub verification: Option<Verification>,
}

/// Remove all partition tables and signatures from a disk, and see that none is left.
///
/// The data between them stays. Safe to repeat; on a disk without signatures only the ends are zeroed.
pub fn erase_metadata(target: &dyn Target, watch: &dyn Watch) -> MetadataRecord {
    let mut record =
        MetadataRecord { ending: Ending::Erased, bytes_erased: 0, removed: Vec::new(), verification: None };
    let result = erase_all(target, watch, &mut record);
    if let Err(fault) = &result {
        record.ending = ending(target, fault);
    }
    record
}

fn erase_all(target: &dyn Target, watch: &dyn Watch, record: &mut MetadataRecord) -> Result<(), Fault> {
    let found = look(target)?;
    record.removed = found.iter().map(Signature::to_string).collect();
    // Partitions before the table that lists them: an interrupted run must be repeatable.
    let mut ranges = target.ranges().map_err(|source| Fault::Command { what: "probing", source })?;
    ranges.reverse();
    let places: Vec<(u64, u64)> = ranges.into_iter().flat_map(|range| places(range, target.size())).collect();
    let total = places.iter().map(|place| place.1).sum();
    for &place in &places {
        if watch.cancelled() {
            return Err(Fault::Cancelled);
        }
        zero(target, place, &mut record.bytes_erased)?;
        let (phase, done) = (Phase::Erasing, record.bytes_erased.min(total));
        watch.progress(Progress { phase, method: None, done, total, rate: 0, eta: None });
    }
    wipe(target, &mut record.bytes_erased)?;
    let left = look(target)?;
    let (bytes_read, mismatched_bytes) = read_back(target, &places)?;
    record.verification = Some(Verification {
        kind: Coverage::Signatures,
        bytes_read,
        expected: ExpectedContent::Zeroes,
        mismatched_bytes,
        unchanged_samples: left.len() as u64,
        samples: found.len() as u64,
        markers: 0,
        markers_found: 0,
        seed: None,
        device_status: None,
        passed: left.is_empty() && mismatched_bytes == 0,
    });
    if mismatched_bytes > 0 {
        let words =
            format!("{mismatched_bytes} bytes where signatures can be are not zero after being overwritten");
        return Err(Fault::Mismatch(words));
    }
    none_left(target, false)
}

/// Read the places again, past all caches: bytes read, and how many of them are not zero. What libblkid does not know,
/// like a label of BlueStore or of ZFS without its companions, is seen by this alone.
fn read_back(target: &dyn Target, places: &[(u64, u64)]) -> Result<(u64, u64), Fault> {
    let block = u64::from(target.logical_block());
    let (mut read, mut other) = (0, 0);
    for &(offset, length) in places {
        let (start, end) = sectors((offset, length), block, target.size());
        let mut buffer = Aligned::new(usize::try_from(end - start).unwrap_or(0));
        read_exact(target, &mut buffer, start)?;
        read += end - start;
        other += buffer.iter().filter(|&&byte| byte != 0).count() as u64;
    }
    Ok((read, other))
}

/// The whole sectors that `length` bytes from `offset` touch, inside the disk.
fn sectors((offset, length): (u64, u64), block: u64, disk: u64) -> (u64, u64) {
    (offset / block * block, (offset + length).min(disk).next_multiple_of(block).min(disk))
}

/// See that nothing is recognised on the disk, and make the kernel forget its partitions. With `may_wipe`,
/// what is found is removed first.
pub(crate) fn none_left(target: &dyn Target, may_wipe: bool) -> Result<(), Fault> {
    if may_wipe {
        wipe(target, &mut 0)?;
    }
    if let Some(first) = look(target)?.first() {
        return Err(Fault::Mismatch(format!("libblkid still finds {first}")));
    }
    target
        .forget_partitions()
        .map_err(|source| Fault::Command { what: "re-reading the partition table", source })
}

/// Zero the sectors of all magics that libblkid finds, until it finds none.
fn wipe(target: &dyn Target, bytes: &mut u64) -> Result<(), Fault> {
    for _ in 0..ROUNDS {
        target.flush().map_err(|source| Fault::Command { what: "flush", source })?;
        let found = look(target)?;
        if found.is_empty() {
            return Ok(());
        }
        for signature in found {
            // A signature without a place (some hybrid formats) is at one of the ends of its range.
            match signature.offset {
                Some(offset) => zero(target, (offset, signature.length.max(1)), bytes)?,
                None => {
                    for place in places(signature.range, target.size()) {
                        zero(target, place, bytes)?;
                    }
                }
            }
        }
    }
    let left: Vec<String> = look(target)?.iter().map(Signature::to_string).collect();
    if left.is_empty() {
        return Ok(());
    }
    Err(Fault::Mismatch(format!("signatures come back after being overwritten: {}", left.join(", "))))
}

fn look(target: &dyn Target) -> Result<Vec<Signature>, Fault> {
    target.signatures().map_err(|source| Fault::Command { what: "probing for signatures", source })
}

/// Where signatures can be in a range: `(offset, length)` in bytes, inside the disk.
fn places((start, size): (u64, u64), disk: u64) -> Vec<(u64, u64)> {
    let size = size.min(disk.saturating_sub(start));
    let head = (start, size.min(END));
    let tail_length = (size - head.1).min(END);
    let tail = (start + size - tail_length, tail_length);
    let copies = COPIES.iter().filter(|&&at| at + COPY <= size).map(|at| (start + at, COPY));
    [head, tail].into_iter().chain(copies).filter(|place| place.1 > 0).collect()
}

/// Zero the sectors that `length` bytes from `offset` touch.
fn zero(target: &dyn Target, (offset, length): (u64, u64), bytes: &mut u64) -> Result<(), Fault> {
    let (mut at, end) = sectors((offset, length), u64::from(target.logical_block()), target.size());
    while at < end {
        let part = usize::try_from(end - at).unwrap_or(usize::MAX).min(ZEROES_LENGTH);
        write_all(target, &zeroes()[..part], at, &mut |written| *bytes += written)?;
        at += part as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_stay_inside_and_cover_both_ends(start in 0u64..1 << 42, size in 1u64..1 << 42) {
            let disk = start + size;
            let places = places((start, size), disk);
            for &(offset, length) in &places {
                prop_assert!(offset >= start && offset + length <= disk && length > 0);
            }
            prop_assert_eq!(places[0].0, start);
            prop_assert!(places.iter().any(|&(offset, length)| offset + length == disk));
            let covered = |at: u64| places.iter().any(|&(offset, length)| (offset..offset + length).contains(&at));
            // md 1.0: 8 KiB from the end, rounded down to 4 KiB; md 0.90: 64 KiB from the end, rounded down.
            if size > 1 << 20 {
                prop_assert!(covered(disk - 8192) && covered(start + 4096) && covered(disk - (128 << 10)));
            }
        }
    }
}
