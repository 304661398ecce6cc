//! Reads FAT12, FAT16 and FAT32 (Microsoft's specification 1.03; UEFI Specification 2.10, 13.3): the directories and small
//! files of an EFI system partition. It writes nothing, and what it reads is bounded whatever the bytes say.

use std::cell::Cell;
use std::io;

/// Bytes that one file system may cost, in directories, files and their chains of clusters.
const MOST: u64 = 8 << 20;
/// Files that are read whole are lists and settings.
const LARGEST_FILE: u64 = 64 << 10;
const ENTRY: usize = 32;

/// What the file system is on.
pub trait Source {
    /// Reads exactly these bytes.
    ///
    /// # Errors
    /// When they are not there.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;
}

impl Source for [u8] {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let place = start.and_then(|start| self.get(start..start.checked_add(bytes.len())?));
        bytes.copy_from_slice(place.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Why a file system is not read.
#[derive(Debug, thiserror::Error)]
pub enum FatError {
    /// The device does.
    #[error("it cannot be read")]
    Read(#[from] io::Error),
    /// Its bytes are none.
    #[error("it has no sound FAT file system: {0}")]
    Form(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Fat12,
    Fat16,
    Fat32,
}

/// A file system.
pub struct Fat<'a, S: Source + ?Sized> {
    source: &'a S,
    kind: Kind,
    cluster_bytes: u64,
    fat: u64,
    /// Of the root directory before FAT32, where it is no chain.
    root: u64,
    root_bytes: u64,
    /// Of FAT32's.
    root_cluster: u32,
    data: u64,
    clusters: u32,
    left: Cell<u64>,
}

/// A file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its long name, or its short one.
    pub name: String,
    short: String,
    /// It is a directory.
    pub directory: bool,
    /// Bytes of a file.
    pub size: u64,
    cluster: u32,
}

impl Entry {
    /// Whether it has this name: FAT does not distinguish cases.
    pub fn is(&self, name: &str) -> bool {
        let same = |own: &str| own.to_lowercase() == name.to_lowercase();
        same(&self.name) || same(&self.short)
    }
}

impl<'a, S: Source + ?Sized> Fat<'a, S> {
    /// The file system that begins with the first byte of `source` and has at most `length` bytes.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(source: &'a S, length: u64) -> Result<Self, FatError> {
        let mut boot = [0; 512];
        source.read(0, &mut boot)?;
        let word = |at: usize| u64::from(u16::from_le_bytes([boot[at], boot[at + 1]]));
        let long = |at: usize| u32::from_le_bytes([boot[at], boot[at + 1], boot[at + 2], boot[at + 3]]);
        let either = |short: u64, long: u32| if short == 0 { u64::from(long) } else { short };
        let (sector, per_cluster) = (word(11), u64::from(boot[13]));
        if boot[510..] != [0x55, 0xaa] {
            return Err(FatError::Form("no boot sector"));
        }
        if ![512, 1024, 2048, 4096].contains(&sector) || !per_cluster.is_power_of_two() {
            return Err(FatError::Form("the size of its sectors or clusters"));
        }
        let (reserved, copies, sectors) = (word(14), u64::from(boot[16]), either(word(19), long(32)));
        let per_fat = either(word(22), long(36));
        if reserved == 0 || copies == 0 || per_fat == 0 {
            return Err(FatError::Form("it has no file allocation table"));
        }
        let root = reserved + copies * per_fat;
        let root_bytes = word(17) * ENTRY as u64;
        let data = root + root_bytes.div_ceil(sector);
        let clusters =
            sectors.checked_sub(data).ok_or(FatError::Form("it is larger than it says"))? / per_cluster;
        let kind = match (word(22), clusters) {
            (0, _) => Kind::Fat32,
            (_, ..4085) => Kind::Fat12,
            _ => Kind::Fat16,
        };
        if sectors * sector > length || !(1..=0x0fff_fff5).contains(&clusters) {
            return Err(FatError::Form("its size"));
        }
        let clusters = u32::try_from(clusters).map_err(|_| FatError::Form("its size"))?;
        Ok(Self {
            source,
            kind,
            cluster_bytes: per_cluster * sector,
            fat: reserved * sector,
            root: root * sector,
            root_bytes,
            root_cluster: long(44) & 0x0fff_ffff,
            data: data * sector,
            clusters,
            left: Cell::new(MOST),
        })
    }

    /// The root directory.
    ///
    /// # Errors
    /// When it is not sound.
    pub fn root(&self) -> Result<Vec<Entry>, FatError> {
        if self.kind == Kind::Fat32 {
            return Ok(entries(&self.chain(self.root_cluster, u64::MAX)?));
        }
        // 65535 entries at most.
        let mut bytes = vec![0; usize::try_from(self.root_bytes).unwrap_or(0)];
        self.fetch(self.root, &mut bytes)?;
        Ok(entries(&bytes))
    }

    /// What is in a directory.
    ///
    /// # Errors
    /// When it is not sound.
    pub fn list(&self, directory: &Entry) -> Result<Vec<Entry>, FatError> {
        Ok(entries(&self.chain(directory.cluster, u64::MAX)?))
    }

    /// The content of a small file.
    ///
    /// # Errors
    /// When it is not sound, or large.
    pub fn content(&self, file: &Entry) -> Result<Vec<u8>, FatError> {
        if file.size > LARGEST_FILE {
            return Err(FatError::Form("a list is larger than 64 KiB"));
        }
        if file.size == 0 {
            return Ok(Vec::new());
        }
        let mut bytes = self.chain(file.cluster, file.size)?;
        let size = usize::try_from(file.size).unwrap_or(0);
        if bytes.len() < size {
            return Err(FatError::Form("a file is shorter than its directory says"));
        }
        bytes.truncate(size);
        Ok(bytes)
    }

    /// The bytes of a chain of clusters, whole clusters, up to the first that has `most` bytes.
    fn chain(&self, first: u32, most: u64) -> Result<Vec<u8>, FatError> {
        let mut bytes = Vec::new();
        let mut cluster = first;
        loop {
            let index = cluster.checked_sub(2).filter(|index| *index < self.clusters);
            let index = index.ok_or(FatError::Form("a chain of clusters leaves it"))?;
            let begin = bytes.len();
            bytes.resize(begin + usize::try_from(self.cluster_bytes).unwrap_or(0), 0);
            self.fetch(self.data + u64::from(index) * self.cluster_bytes, &mut bytes[begin..])?;
            if bytes.len() as u64 >= most {
                return Ok(bytes);
            }
            match self.next(cluster)? {
                Some(next) => cluster = next,
                None => return Ok(bytes),
            }
        }
    }

    /// The cluster after this one; `None` after the last.
    fn next(&self, cluster: u32) -> Result<Option<u32>, FatError> {
        let number = u64::from(cluster);
        let (place, width) = match self.kind {
            Kind::Fat12 => (number + number / 2, 2),
            Kind::Fat16 => (2 * number, 2),
            Kind::Fat32 => (4 * number, 4),
        };
        let mut bytes = [0; 4];
        self.fetch(self.fat + place, &mut bytes[..width])?;
        let value = u32::from_le_bytes(bytes);
        let (value, end) = match self.kind {
            Kind::Fat12 if cluster % 2 == 1 => (value >> 4, 0xff8),
            Kind::Fat12 => (value & 0xfff, 0xff8),
            Kind::Fat16 => (value, 0xfff8),
            Kind::Fat32 => (value & 0x0fff_ffff, 0x0fff_fff8),
        };
        Ok((value < end).then_some(value))
    }

    fn fetch(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FatError> {
        let left = self.left.get().checked_sub(bytes.len() as u64);
        self.left.set(left.ok_or(FatError::Form("its directories are too large, or go in a circle"))?);
        Ok(self.source.read(offset, bytes)?)
    }
}

/// The entries of a directory.
fn entries(bytes: &[u8]) -> Vec<Entry> {
    let mut all = Vec::new();
    // The parts of a long name come before the entry, the last first.
    let mut long = LongName::default();
    for raw in bytes.chunks_exact(ENTRY) {
        match (raw[0], raw[11]) {
            (0, _) => break,
            (0xe5, _) => long = LongName::default(),
            (_, kind) if kind & 0x3f == 0x0f => long.add(raw),
            // The volume's label.
            (_, kind) if kind & 0x08 != 0 => long = LongName::default(),
            (_, kind) => {
                let short = short_name(raw);
                let name = std::mem::take(&mut long).of(raw).unwrap_or_else(|| short.clone());
                let high = u32::from(u16::from_le_bytes([raw[20], raw[21]]));
                let low = u32::from(u16::from_le_bytes([raw[26], raw[27]]));
                let size = u64::from(u32::from_le_bytes([raw[28], raw[29], raw[30], raw[31]]));
                if !matches!(short.as_str(), "." | "..") {
                    let directory = kind & 0x10 != 0;
                    all.push(Entry { name, short, directory, size, cluster: high << 16 | low });
                }
            }
        }
    }
    all
}

fn short_name(raw: &[u8]) -> String {
    let part = |bytes: &[u8], small: bool| {
        let text: String = bytes.iter().map(|&byte| if byte == 5 { 'å' } else { char::from(byte) }).collect();
        let text = text.trim_end().to_owned();
        if small { text.to_lowercase() } else { text }
    };
    // Windows NT and Linux remember here that a name was written in small letters.
    let (base, extension) = (part(&raw[..8], raw[12] & 8 != 0), part(&raw[8..11], raw[12] & 16 != 0));
    if extension.is_empty() { base } else { format!("{base}.{extension}") }
}

/// A long name as far as it was read.
#[derive(Default)]
struct LongName {
    units: Vec<u16>,
    /// The number that the next part must have.
    expected: u8,
    checksum: u8,
}

impl LongName {
    fn add(&mut self, raw: &[u8]) {
        let number = raw[0] & 0x1f;
        if raw[0] & 0x40 != 0 {
            *self = Self { units: Vec::new(), expected: number, checksum: raw[13] };
        }
        if number == 0 || number != self.expected || raw[13] != self.checksum {
            *self = Self::default();
            return;
        }
        self.expected -= 1;
        let places = [1..11, 14..26, 28..32].map(|place| &raw[place]);
        let units = places.iter().flat_map(|place| place.chunks_exact(2));
        let units = units.map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        self.units = units.take_while(|&unit| unit != 0).chain(self.units.iter().copied()).collect();
    }

    /// It, if it is complete and belongs to this entry.
    fn of(self, raw: &[u8]) -> Option<String> {
        let sum = raw[..11].iter().fold(0u8, |sum, &byte| sum.rotate_right(1).wrapping_add(byte));
        (self.expected == 0 && !self.units.is_empty() && sum == self.checksum)
            .then(|| String::from_utf16_lossy(&self.units))
    }
}
