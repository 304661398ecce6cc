//! What was on a disk before it was erased: sectors spread over the disk, kept as digests, so that a method
//! that did nothing, or a device that only says it did, is found out.

use crate::aligned::{Aligned, is_uniform};
use crate::fault::Fault;
use crate::progress::{Phase, Progress, Watch};
use crate::target::{Target, read_exact};
use sha2::{Digest, Sha256};

/// Parts the disk is divided into; of each at most one sector is kept.
const STRATA: u64 = 256;
/// How much of each part is searched for a sector that holds anything.
const WINDOW: u64 = 64 * 1024;

/// Sectors that held more than one byte repeated, with what was in them. What is uniform is no data: it may be
/// what an earlier erase left, and an erase may leave it again.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    sectors: Vec<(u64, [u8; 32])>,
    sector: usize,
    /// How much of each digest is known.
    known: usize,
}

/// A sector and the beginning of its SHA-256. Two sectors that differ only in the rest of
/// the hash count as unchanged: an error on the safe side.
pub(crate) type SampleDigest = (u64, [u8; KEPT]);

/// Bytes of a digest that outlive the process.
const KEPT: usize = 8;
/// How many samples outlive it, at most.
const KEPT_SAMPLES: usize = 32;

impl Samples {
    /// Look at the disk. Sectors that cannot be read are left out: writing may yet repair them.
    ///
    /// None are taken from a drive that is locked or runs a sanitize operation: in the latter case the kernel repeats each
    /// read of a SCSI disk for three minutes before it reports an error, and that cannot be cancelled.
    pub(crate) fn take(target: &dyn Target, watch: &dyn Watch) -> Result<Self, Fault> {
        let sector = target.logical_block() as usize;
        let mut samples = Samples { sectors: Vec::new(), sector, known: 32 };
        if target.drive().is_some_and(|drive| !drive.probe.gives_content()) {
            return Ok(samples);
        }
        let total = target.size();
        let mut buffer = Aligned::new(usize::try_from(WINDOW).unwrap_or(0));
        let windows = windows(total, sector as u64);
        for (index, &(offset, length)) in windows.iter().enumerate() {
            if watch.cancelled() {
                return Err(Fault::Cancelled);
            }
            let done = total / windows.len() as u64 * index as u64;
            let phase = Phase::Sampling;
            watch.progress(Progress { phase, method: None, done, total, rate: 0, eta: None });
            let part = &mut buffer[..usize::try_from(length).unwrap_or(0)];
            match read_exact(target, part, offset) {
                Ok(()) => {}
                Err(fault) if !target.present() => return Err(Fault::Vanished(fault.to_string())),
                Err(_) => continue,
            }
            let found = part.chunks_exact(sector).enumerate().find(|(_, bytes)| !is_uniform(bytes));
            if let Some((number, bytes)) = found {
                samples.sectors.push((offset + (number * sector) as u64, Sha256::digest(bytes).into()));
            }
        }
        Ok(samples)
    }

    /// A few of them, for [`Samples::again`].
    pub(crate) fn kept(&self) -> Vec<SampleDigest> {
        let step = self.sectors.len().div_ceil(KEPT_SAMPLES).max(1);
        let short = |digest: &[u8; 32]| std::array::from_fn(|at| digest[at]);
        self.sectors.iter().step_by(step).map(|(offset, digest)| (*offset, short(digest))).collect()
    }

    /// Those of an earlier process, as far as they are sectors of this disk.
    pub(crate) fn again(target: &dyn Target, kept: &[SampleDigest]) -> Self {
        let sector = u64::from(target.logical_block());
        let fits = |&&(at, _): &&SampleDigest| {
            at % sector == 0 && at.checked_add(sector).is_some_and(|end| end <= target.size())
        };
        let long = |&(offset, short): &SampleDigest| {
            (offset, std::array::from_fn(|at| *short.get(at).unwrap_or(&0)))
        };
        let sectors = kept.iter().filter(fits).map(long).collect();
        Samples { sectors, sector: target.logical_block() as usize, known: KEPT }
    }

    /// Sectors kept.
    pub(crate) fn count(&self) -> u64 {
        self.sectors.len() as u64
    }

    /// How many of the sectors still read as before.
    pub(crate) fn unchanged(&self, target: &dyn Target, watch: &dyn Watch) -> Result<u64, Fault> {
        let mut buffer = Aligned::new(self.sector);
        let mut unchanged = 0;
        for (offset, digest) in &self.sectors {
            if watch.cancelled() {
                return Err(Fault::Cancelled);
            }
            read_exact(target, &mut buffer, *offset)?;
            unchanged += u64::from(Sha256::digest(&*buffer)[..self.known] == digest[..self.known]);
        }
        Ok(unchanged)
    }
}

/// Where to look: the beginning of each stratum, shifted a little differently in each so that a regular
/// layout does not hide between them, and the very end, where a backup GPT is.
fn windows(size: u64, sector: u64) -> Vec<(u64, u64)> {
    let usable = size / sector * sector;
    let stratum = (usable / STRATA / sector * sector).max(sector);
    let window = WINDOW.min(stratum).max(sector);
    let spread = (stratum - window.min(stratum)) / sector + 1;
    let mut windows: Vec<(u64, u64)> = (0..STRATA)
        // 2654435761 is Knuth's multiplicative hash; the first stratum stays at 0, where tables are.
        .map(|index| (index * stratum, index.wrapping_mul(2_654_435_761) % spread * sector))
        .map(|(start, shift)| (start + shift, window))
        .take_while(|&(offset, length)| offset + length <= usable)
        .collect();
    if usable >= window {
        windows.push((usable - window, window));
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn windows_stay_on_the_disk_and_on_sectors(size in 512u64..1 << 44, shift in 9u32..14) {
            let sector = 1u64 << shift;
            for (offset, length) in windows(size, sector) {
                prop_assert!(offset % sector == 0 && length % sector == 0 && length > 0);
                prop_assert!(offset + length <= size && length <= WINDOW);
            }
        }
    }

    #[test]
    fn a_disk_of_any_size_is_looked_at_from_end_to_end() {
        for size in [1u64 << 20, 100 << 20, 4 << 40] {
            let windows = windows(size, 512);
            assert_eq!(windows.len(), 257);
            assert_eq!(windows[0].0, 0);
            assert_eq!(windows[256].0 + windows[256].1, size);
        }
    }
}
