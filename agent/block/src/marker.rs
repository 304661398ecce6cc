//! Known sectors that are written to a disk before an erase whose result has no particular content, and looked for
//! afterwards: what still reads as a marker was not erased. Unlike the samples they are there on any disk that takes
//! writes, also on a blank one, and again before each further method.

use crate::aligned::Aligned;
use crate::fault::Fault;
use crate::method::Method;
use crate::progress::{Phase, Progress, Watch};
use crate::sample::{STRATA, SampleSeed, Samples, draw, new_seed};
use crate::target::{Target, read_exact, write_all};
use sha2::{Digest, Sha256};

/// Bytes of the content that are made at once. A marker that still has so many in one place counts as found.
const PIECE: usize = 32;
/// After so many errors the drive is taken for one that allows no writes now; each may last half a minute.
const ERRORS: usize = 4;

/// The markers that were seen on a disk before it was erased.
#[derive(Debug, Default)]
pub(crate) struct Markers {
    seed: SampleSeed,
    /// Number and offset of each.
    places: Vec<(u64, u64)>,
    sector: usize,
}

impl Markers {
    /// Write them and read them back. None are written to a drive that gives no content; places that reject the write, or
    /// read back otherwise, are left out.
    pub(crate) fn write(
        target: &dyn Target,
        method: Method,
        samples: &Samples,
        watch: &dyn Watch,
    ) -> Result<Self, Fault> {
        if target.drive().is_some_and(|drive| !drive.probe.gives_content()) {
            return Ok(Markers::default());
        }
        let (seed, sector) = (samples.seed().map_or_else(new_seed, Ok)?, target.logical_block() as usize);
        let mut markers = Markers { seed, places: Vec::new(), sector };
        let mut errors = 0;
        for (index, at) in places(target.size(), sector as u64, seed, samples) {
            let (done, total) = (STRATA.min(index - STRATA), STRATA);
            step(watch, method, done, total)?;
            match write_all(target, &markers.content(index), at, &mut |_| {}) {
                Ok(()) => markers.places.push((index, at)),
                Err(fault) if !target.present() => return Err(Fault::Vanished(fault.to_string())),
                Err(_) => errors += 1,
            }
            if errors == ERRORS {
                break;
            }
        }
        if let Err(source) = target.flush() {
            // A drive whose sanitize operation failed takes no writes until another one succeeds.
            let gone = || Err(Fault::Vanished(source.to_string()));
            return if target.present() { Ok(Markers::default()) } else { gone() };
        }
        let mut seen = Vec::new();
        for &(index, at) in &markers.places {
            step(watch, method, STRATA, STRATA)?;
            let mut read = Aligned::new(sector);
            if read_exact(target, &mut read, at).is_ok() && *read == *markers.content(index) {
                seen.push((index, at));
            }
        }
        markers.places = seen;
        Ok(markers)
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.places.len() as u64
    }

    /// What their places and content were drawn from; `None` without any.
    pub(crate) fn seed(&self) -> Option<SampleSeed> {
        (!self.places.is_empty()).then_some(self.seed)
    }

    /// How many are still there, whole or in part.
    pub(crate) fn found(&self, target: &dyn Target, watch: &dyn Watch) -> Result<u64, Fault> {
        let mut read = Aligned::new(self.sector);
        let mut found = 0;
        for &(index, at) in &self.places {
            if watch.cancelled() {
                return Err(Fault::Cancelled);
            }
            read_exact(target, &mut read, at)?;
            let content = self.content(index);
            let same = read.chunks(PIECE).zip(content.chunks(PIECE)).any(|(now, then)| now == then);
            found += u64::from(same);
        }
        Ok(found)
    }

    /// The content of a marker: SHA-256 of the seed, the marker's number and the number of the piece, one after the other.
    fn content(&self, index: u64) -> Aligned {
        let mut content = Aligned::new(self.sector);
        for (number, piece) in (0_u64..).zip(content.chunks_mut(PIECE)) {
            let digest = Sha256::new()
                .chain_update(self.seed)
                .chain_update(index.to_be_bytes())
                .chain_update(number.to_be_bytes())
                .finalize();
            piece.copy_from_slice(&digest[..piece.len()]);
        }
        content
    }
}

fn step(watch: &dyn Watch, method: Method, done: u64, total: u64) -> Result<(), Fault> {
    if watch.cancelled() {
        return Err(Fault::Cancelled);
    }
    watch.progress(Progress {
        phase: Phase::Sampling,
        method: Some(method),
        done,
        total,
        rate: 0,
        eta: None,
    });
    Ok(())
}

/// Number and offset of each marker: a sector of each stratum, or the next that is no sample. Their numbers follow those of
/// the samples' windows.
fn places(
    size: u64,
    sector: u64,
    seed: SampleSeed,
    samples: &Samples,
) -> impl Iterator<Item = (u64, u64)> + use<'_> {
    let sectors = (size / sector / STRATA).max(1);
    let whole = size / sector;
    let in_stratum = move |stratum: u64| {
        let index = STRATA + stratum;
        let first = draw(seed, index) % sectors;
        let at = move |next: u64| (stratum * sectors + (first + next) % sectors) * sector;
        let free = (0..sectors).map(at).find(|at| !samples.holds(*at));
        free.map(|at| (index, at))
    };
    (0..STRATA.min(whole)).filter_map(in_stratum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeDisk, FakeFault};
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    const SIZE: usize = 1 << 20;

    fn written(disk: &FakeDisk, samples: &Samples) -> Markers {
        Markers::write(disk, Method::NvmeFormat, samples, &()).unwrap()
    }

    #[test]
    fn markers_are_written_next_to_the_samples_and_found_as_long_as_a_piece_of_them_is_left() {
        let content: Vec<u8> = (0..SIZE).map(|at| u8::try_from((at / 512 + at) % 255).unwrap() + 1).collect();
        let disk = FakeDisk::new(content.clone(), 512, vec![]);
        let samples = Samples::take(&disk, &()).unwrap();
        let markers = written(&disk, &samples);
        assert_eq!((markers.count(), markers.seed()), (256, samples.seed()));
        assert_eq!(samples.unchanged(&disk, &()).unwrap(), samples.count(), "no sample was written over");
        let places: BTreeSet<u64> = markers.places.iter().map(|(_, at)| *at / 4096).collect();
        assert_eq!(places.len(), 256, "one in each part of the disk");
        assert_eq!(markers.found(&disk, &()).unwrap(), 256);
        let (_, at) = markers.places[9];
        disk.fill(0, at..at + 480).unwrap();
        assert_eq!(markers.found(&disk, &()).unwrap(), 256, "its last piece is left");
        disk.fill(0, at..at + 512).unwrap();
        assert_eq!(markers.found(&disk, &()).unwrap(), 255);
        disk.fill(7, 0..SIZE as u64).unwrap();
        assert_eq!(markers.found(&disk, &()).unwrap(), 0);
    }

    #[test]
    fn progress_counts_the_markers() {
        struct Counts(Mutex<Vec<u64>>);
        impl Watch for Counts {
            fn progress(&self, progress: Progress) {
                self.0.lock().unwrap().push(progress.done);
            }
            fn cancelled(&self) -> bool {
                false
            }
        }
        let disk = FakeDisk::new(vec![1; SIZE], 512, vec![]);
        let counts = Counts(Mutex::default());
        Markers::write(&disk, Method::NvmeFormat, &Samples::default(), &counts).unwrap();
        let counts = counts.0.into_inner().unwrap();
        assert!(counts[..256].iter().copied().eq(0..256), "{counts:?}");
        assert_eq!(counts[256..], [256; 256], "then each is read");
    }

    #[test]
    fn only_what_read_back_as_a_marker_is_one_and_a_drive_that_rejects_writes_is_not_pressed() {
        let half = SIZE as u64 / 2;
        let deaf = FakeDisk::new(vec![1; SIZE], 512, vec![FakeFault::IgnoresWrites(0..half)]);
        let samples = Samples::take(&deaf, &()).unwrap();
        assert_eq!(written(&deaf, &samples).count(), 128);
        let shut = FakeDisk::new(vec![1; SIZE], 512, vec![FakeFault::WriteError(0..SIZE as u64)]);
        let markers = written(&shut, &samples);
        assert_eq!((markers.count(), markers.seed(), shut.written()), (0, None, 0));
        assert!(shut.content() == vec![1; SIZE]);
    }

    #[test]
    fn the_content_and_the_places_follow_from_the_seed() {
        let (none, seed) = (Samples::default(), SampleSeed::default());
        let markers = Markers { seed, places: Vec::new(), sector: 512 };
        // By Python: hashlib.sha256(bytes(16) + (256).to_bytes(8, "big") + (1).to_bytes(8, "big")).
        let second = &markers.content(256)[32..40];
        assert_eq!(second, [134, 202, 227, 132, 121, 89, 179, 143]);
        // The same of the seed and 257 alone: its first eight bytes, modulo 2048 sectors of 512 bytes, in the second part.
        assert_eq!(places(256 << 20, 512, seed, &none).nth(1), Some((257, (2048 + 652) * 512)));
        for size in [512_u64, 100 * 512, 1 << 44] {
            let all: Vec<_> = places(size, 512, seed, &none).collect();
            assert_eq!(all.len() as u64, STRATA.min(size / 512));
            assert!(all.iter().all(|(_, at)| at % 512 == 0 && at + 512 <= size));
        }
    }
}
