//! What was on a disk before it was erased: sectors spread over the disk, kept as digests, so that a method
//! that did nothing, or a device that only says it did, is found out.

use crate::aligned::{Aligned, is_uniform};
use crate::fault::Fault;
use crate::progress::{Phase, Progress, Watch};
use crate::target::{Target, read_exact};
use sha2::{Digest, Sha256};

/// Parts the disk is divided into; of each at most one sector is kept.
pub(crate) const STRATA: u64 = 256;
/// How much of each part is searched for a sector that holds anything.
const WINDOW: u64 = 64 * 1024;

/// What the places of the samples are drawn from: a new one for each erase, so that no firmware knows them before.
pub(crate) type SampleSeed = [u8; 16];

/// Sectors that held more than one byte repeated, with what was in them. What is uniform is no data: it may be
/// what an earlier erase left, and an erase may leave it again.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    sectors: Vec<(u64, [u8; 32])>,
    /// Sectors of one byte repeated. If they have changed, that proves as much; if not, nothing.
    uniform: Vec<(u64, [u8; 32])>,
    /// `None`: they are those of an earlier process, or there are none.
    seed: Option<SampleSeed>,
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
        let seed = new_seed()?;
        let mut samples =
            Samples { sectors: Vec::new(), uniform: Vec::new(), seed: Some(seed), sector, known: 32 };
        if target.drive().is_some_and(|drive| !drive.probe.gives_content()) {
            return Ok(samples);
        }
        let total = target.size();
        let mut buffer = Aligned::new(usize::try_from(WINDOW).unwrap_or(0));
        let windows = windows(total, sector as u64, seed);
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
            } else if let Some(bytes) = part.get(..sector) {
                samples.uniform.push((offset, Sha256::digest(bytes).into()));
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
        let sector = target.logical_block() as usize;
        Samples { sectors, uniform: Vec::new(), seed: None, sector, known: KEPT }
    }

    /// Sectors kept.
    pub(crate) fn count(&self) -> u64 {
        self.sectors.len() as u64
    }

    /// Whether the sector at `offset` is one of them.
    pub(crate) fn holds(&self, offset: u64) -> bool {
        self.sectors.iter().chain(&self.uniform).any(|(at, _)| *at == offset)
    }

    /// What their places were drawn from.
    pub(crate) fn seed(&self) -> Option<SampleSeed> {
        self.seed
    }

    /// How many of the sectors still read as before.
    pub(crate) fn unchanged(&self, target: &dyn Target, watch: &dyn Watch) -> Result<u64, Fault> {
        self.same(&self.sectors, target, watch)
    }

    /// How many of the uniform sectors read otherwise than before.
    pub(crate) fn changed_uniform(&self, target: &dyn Target, watch: &dyn Watch) -> Result<u64, Fault> {
        Ok(self.uniform.len() as u64 - self.same(&self.uniform, target, watch)?)
    }

    fn same(
        &self,
        sectors: &[(u64, [u8; 32])],
        target: &dyn Target,
        watch: &dyn Watch,
    ) -> Result<u64, Fault> {
        let mut buffer = Aligned::new(self.sector);
        let mut same = 0;
        for (offset, digest) in sectors {
            if watch.cancelled() {
                return Err(Fault::Cancelled);
            }
            read_exact(target, &mut buffer, *offset)?;
            same += u64::from(Sha256::digest(&*buffer)[..self.known] == digest[..self.known]);
        }
        Ok(same)
    }
}

/// A new seed.
pub(crate) fn new_seed() -> Result<SampleSeed, Fault> {
    let mut seed = SampleSeed::default();
    getrandom::fill(&mut seed).map_err(|error| Fault::Command {
        what: "asking the kernel for random bytes",
        source: std::io::Error::other(error.to_string()),
    })?;
    Ok(seed)
}

/// Where to look: a place in each stratum, drawn from the seed, the very beginning, where tables are, and the very end, where
/// a backup GPT is.
fn windows(size: u64, sector: u64, seed: SampleSeed) -> Vec<(u64, u64)> {
    let usable = size / sector * sector;
    let stratum = (usable / STRATA / sector * sector).max(sector);
    let window = WINDOW.min(stratum).max(sector);
    let spread = (stratum - window.min(stratum)) / sector + 1;
    let mut windows: Vec<(u64, u64)> = (0..STRATA)
        .map(|index| (index * stratum, if index == 0 { 0 } else { draw(seed, index) % spread * sector }))
        .map(|(start, shift)| (start + shift, window))
        .take_while(|&(offset, length)| offset + length <= usable)
        .collect();
    if usable >= window {
        windows.push((usable - window, window));
    }
    windows
}

/// The number that belongs to a stratum: the first eight bytes, big endian, of the SHA-256 of the seed and the stratum's
/// index in eight bytes, big endian. `docs/certificate.md` says so to those who check a record.
pub(crate) fn draw(seed: SampleSeed, index: u64) -> u64 {
    let digest = Sha256::new().chain_update(seed).chain_update(index.to_be_bytes()).finalize();
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeDisk;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn windows_stay_on_the_disk_and_on_sectors(
            size in 512u64..1 << 44, shift in 9u32..14, seed: SampleSeed,
        ) {
            let sector = 1u64 << shift;
            for (offset, length) in windows(size, sector, seed) {
                prop_assert!(offset % sector == 0 && length % sector == 0 && length > 0);
                prop_assert!(offset + length <= size && length <= WINDOW);
            }
        }
    }

    #[test]
    fn a_disk_of_any_size_is_looked_at_from_end_to_end() {
        for size in [1u64 << 20, 100 << 20, 4 << 40] {
            let windows = windows(size, 512, SampleSeed::default());
            assert_eq!(windows.len(), 257);
            assert_eq!(windows[0].0, 0);
            assert_eq!(windows[256].0 + windows[256].1, size);
            let stratum = size / STRATA;
            for (index, (offset, length)) in (0..STRATA).zip(&windows) {
                let part = index * stratum..(index + 1) * stratum;
                assert!(part.start <= *offset && offset + length <= part.end, "{offset} is not in {part:?}");
            }
        }
    }

    #[test]
    fn of_the_samples_of_an_earlier_process_only_sectors_of_this_disk_are_kept() {
        let disk = FakeDisk::new(vec![0; 1 << 20], 512, Vec::new());
        let kept = [512, 513, 1 << 20, (1 << 20) - 512, u64::MAX - 511].map(|at| (at, [7; KEPT]));
        let samples = Samples::again(&disk, &kept);
        let places: Vec<u64> = samples.sectors.iter().map(|(at, _)| *at).collect();
        assert_eq!(places, [512, (1 << 20) - 512]);
    }

    #[test]
    fn places_are_drawn_from_the_seed_and_from_it_again() {
        let places = |seed: u8| windows(4 << 40, 512, [seed; 16]);
        assert_eq!(places(1), places(1));
        let same = places(1).iter().zip(places(2)).filter(|(one, other)| **one == *other).count();
        assert_eq!(same, 2, "the beginning and the end");
        // SHA-256 of sixteen zero bytes and of 1 in eight bytes begins with this, by Python's hashlib.
        assert_eq!(draw(SampleSeed::default(), 1), 0xed8b_7b2c_2c6b_ae3a);
    }
}
