//! The proof from outside: what of the old data is left on an image file?
//!
//! A [`Snapshot`] taken before keeps a 64-bit hash of every sector that held data (one with a byte other
//! than zero). Afterwards each such sector is hashed again: equal means unchanged. A collision could only
//! count a changed sector as unchanged, never the reverse, so the proof errs on the safe side.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use nix::errno::Errno;
use nix::unistd::{Whence, lseek};

use crate::fill::{SECTOR, TAG};

const CHUNK: usize = 1 << 20;

/// What a disk held: hashes of its sectors by chunk of 1 MiB; 0 for a sector of zeroes, and no entry
/// for a chunk of zeroes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    size: u64,
    chunks: BTreeMap<u64, Vec<u64>>,
}

/// What is found on a disk, compared with its snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Findings {
    /// Bytes of the disk.
    pub size: u64,
    /// Sectors (512 bytes) that held data before.
    pub held_data: u64,
    /// Of those, the ones that still read the same.
    pub unchanged: u64,
    /// Bytes other than zero now.
    pub nonzero_bytes: u64,
    /// Places, at any byte, where the lab's tag is found now.
    pub tags: u64,
}

impl Snapshot {
    /// Reads an image file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn take(file: &Path) -> Result<Self> {
        let mut chunks = BTreeMap::new();
        let size = read_chunks(file, |number, bytes| {
            let hashes: Vec<u64> = bytes.chunks(SECTOR).map(hash).collect();
            if hashes.iter().any(|hash| *hash != 0) {
                chunks.insert(number, hashes);
            }
        })?;
        Ok(Self { size, chunks })
    }

    /// Number of sectors that held data.
    #[must_use]
    pub fn held_data(&self) -> u64 {
        self.chunks.values().flatten().filter(|hash| **hash != 0).count() as u64
    }

    /// How many sectors, of the so many bytes from `from` on, hold now neither zeroes nor what they held before.
    ///
    /// # Errors
    /// When the file cannot be read, or is shorter.
    pub fn changed_to_data(&self, file: &Path, from: u64, length: usize) -> Result<usize> {
        let mut bytes = vec![0; length];
        let read = File::open(file).and_then(|file| file.read_exact_at(&mut bytes, from));
        read.with_context(|| format!("cannot read {}", file.display()))?;
        let first = usize::try_from(from)? / SECTOR;
        let per_chunk = CHUNK / SECTOR;
        let sectors = bytes.chunks(SECTOR).enumerate().filter(|(index, sector)| {
            let number = first + index;
            let chunk = self.chunks.get(&((number / per_chunk) as u64));
            let before = chunk.and_then(|hashes| hashes.get(number % per_chunk)).copied().unwrap_or(0);
            let now = hash(sector);
            now != 0 && now != before
        });
        Ok(sectors.count())
    }

    /// Reads the file again and compares.
    ///
    /// # Errors
    /// When it cannot be read, or its size is another.
    pub fn compare(&self, file: &Path) -> Result<Findings> {
        let mut found = Findings {
            size: self.size,
            held_data: self.held_data(),
            unchanged: 0,
            nonzero_bytes: 0,
            tags: 0,
        };
        // The end of the last chunk, in which a tag may begin.
        let (mut tail, mut expected) = (Vec::new(), 0);
        let size = read_chunks(file, |number, bytes| {
            if let Some(before) = self.chunks.get(&number) {
                let now = bytes.chunks(SECTOR).map(hash);
                found.unchanged +=
                    before.iter().zip(now).filter(|(old, new)| **old != 0 && *old == new).count() as u64;
            }
            let nonzero = bytes.iter().filter(|byte| **byte != 0).count() as u64;
            found.nonzero_bytes += nonzero;
            if number != expected {
                tail.clear();
            }
            if nonzero > 0 {
                let window = [tail.as_slice(), bytes].concat();
                found.tags += window.windows(TAG.len()).filter(|w| *w == TAG).count() as u64;
            }
            tail = bytes[bytes.len().saturating_sub(TAG.len() - 1)..].to_vec();
            expected = number + 1;
        })?;
        ensure!(size == self.size, "{} had {} bytes, now {size}", file.display(), self.size);
        Ok(found)
    }
}

/// The first byte in which two files differ; where one ends, they differ.
///
/// # Errors
/// When one cannot be read.
pub fn first_difference(one: &Path, other: &Path) -> Result<Option<u64>> {
    let cannot = |path: &Path| format!("cannot read {}", path.display());
    let open = |path: &Path| File::open(path).with_context(|| cannot(path));
    let (files, mut at) = ([open(one)?, open(other)?], 0);
    loop {
        let piece = |file: &File| {
            let mut bytes = Vec::new();
            let reader = file;
            reader.take(CHUNK as u64).read_to_end(&mut bytes).map(|_| bytes)
        };
        let (a, b) = (
            piece(&files[0]).with_context(|| cannot(one))?,
            piece(&files[1]).with_context(|| cannot(other))?,
        );
        if a != b {
            let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
            return Ok(Some(at + same as u64));
        }
        if a.is_empty() {
            return Ok(None);
        }
        at += a.len() as u64;
    }
}

/// 0 for zeroes, else a hash that is not 0.
fn hash(sector: &[u8]) -> u64 {
    let mut sum = 0u64;
    let mut any = 0u64;
    for part in sector.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        let word = u64::from_le_bytes(word);
        any |= word;
        sum = (sum.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    if any == 0 { 0 } else { (sum ^ (sum >> 32)) | 1 }
}

/// Calls `see` with each chunk that may hold data; holes of sparse files are passed over. Returns the size.
fn read_chunks(path: &Path, mut see: impl FnMut(u64, &[u8])) -> Result<u64> {
    let cannot = || format!("cannot read {}", path.display());
    let mut file = File::open(path).with_context(cannot)?;
    let size = file.metadata().with_context(cannot)?.size();
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    while at < size {
        let data = match lseek(&file, i64::try_from(at)?, Whence::SeekData) {
            Ok(offset) => u64::try_from(offset)?,
            Err(Errno::ENXIO) => break,
            Err(error) => return Err(error).with_context(cannot),
        };
        let number = data / CHUNK as u64;
        let start = number * CHUNK as u64;
        let length = usize::try_from((size - start).min(CHUNK as u64))?;
        file.seek(SeekFrom::Start(start)).with_context(cannot)?;
        file.read_exact(&mut buffer[..length]).with_context(cannot)?;
        see(number, &buffer[..length]);
        at = start + length as u64;
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fill;
    use std::os::unix::fs::FileExt;

    const SIZE: u64 = 3 << 20;

    fn filled() -> (tempfile::NamedTempFile, Snapshot) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fill::fill(file.path(), "scan", SIZE).unwrap();
        let snapshot = Snapshot::take(file.path()).unwrap();
        (file, snapshot)
    }

    #[test]
    fn an_untouched_disk_is_all_unchanged() {
        let (file, snapshot) = filled();
        let found = snapshot.compare(file.path()).unwrap();
        let sectors = SIZE / 512;
        assert_eq!((found.held_data, found.unchanged, found.tags), (sectors, sectors, sectors));
    }

    #[test]
    fn one_sector_left_over_is_found() {
        let (file, snapshot) = filled();
        let last = SIZE / 512 - 1;
        file.as_file().set_len(0).unwrap();
        file.as_file().set_len(SIZE).unwrap();
        let clean = snapshot.compare(file.path()).unwrap();
        assert_eq!((clean.unchanged, clean.nonzero_bytes, clean.tags), (0, 0, 0));
        file.as_file().write_all_at(&fill::sector("scan", last), last * 512).unwrap();
        let found = snapshot.compare(file.path()).unwrap();
        assert_eq!((found.unchanged, found.tags), (1, 1));
        assert!(found.nonzero_bytes > 400);
    }

    #[test]
    fn data_moved_elsewhere_shows_by_its_tag_even_across_chunks() {
        let (file, snapshot) = filled();
        file.as_file().set_len(0).unwrap();
        file.as_file().set_len(SIZE).unwrap();
        file.as_file().write_all_at(&fill::sector("scan", 5), (1 << 20) - 7).unwrap();
        let found = snapshot.compare(file.path()).unwrap();
        assert_eq!((found.unchanged, found.tags), (0, 1));
    }

    #[test]
    fn new_data_in_a_part_of_the_disk_is_counted() {
        let (file, snapshot) = filled();
        let changed = |from, length| snapshot.changed_to_data(file.path(), from, length).unwrap();
        assert_eq!(changed(0, 1 << 20), 0);
        file.as_file().write_all_at(&[0; 4096], 1 << 20).unwrap();
        assert_eq!(changed(1 << 20, 1 << 20), 0, "zeroes are no data");
        file.as_file().write_all_at(b"x", (1 << 20) + 512).unwrap();
        file.as_file().write_all_at(b"x", 5).unwrap();
        assert_eq!((changed(0, 1 << 20), changed(1 << 20, 1 << 20), changed(2 << 20, 1 << 20)), (1, 1, 0));
        assert!(snapshot.changed_to_data(file.path(), SIZE, 512).is_err());
    }

    #[test]
    fn two_files_are_compared_byte_for_byte() {
        let (file, _) = filled();
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy");
        std::fs::copy(file.path(), &copy).unwrap();
        assert_eq!(first_difference(file.path(), &copy).unwrap(), None);
        file.as_file().write_all_at(b"\xff\x00", SIZE - 7).unwrap();
        let found = first_difference(file.path(), &copy).unwrap();
        assert!(found.is_some_and(|at| (SIZE - 7..SIZE - 5).contains(&at)), "{found:?}");
        file.as_file().set_len(SIZE - 100).unwrap();
        assert_eq!(first_difference(&copy, file.path()).unwrap(), Some(SIZE - 100));
    }

    #[test]
    fn sectors_without_data_do_not_count_and_a_changed_size_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(SIZE).unwrap();
        file.as_file().write_all_at(b"x", SIZE - 1).unwrap();
        let snapshot = Snapshot::take(file.path()).unwrap();
        assert_eq!(snapshot.held_data(), 1);
        file.as_file().set_len(SIZE + 512).unwrap();
        assert!(snapshot.compare(file.path()).is_err());
    }
}
