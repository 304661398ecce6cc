//! A file in the root directory of a FAT 12 or FAT 16 file system (Microsoft's FAT specification 1.03). An Ironic makes a FAT 12 of
//! 1440 KiB. Nothing that is read is trusted: no number leads out of the file system, and no chain of clusters is endless.

use super::source::{Source, number16, number32};
use std::io;

const ENTRY: usize = 32;
/// Most entries of a root directory that are looked at; usual ones have 64 to 512.
const ENTRIES_MAX: u16 = 4096;
/// First bytes of entries: the end of the directory; a file that was removed.
const END: u8 = 0;
const REMOVED: u8 = 0xe5;
/// Attributes.
const LABEL: u8 = 0x08;
const DIRECTORY: u8 = 0x10;
const LONG_NAME: u8 = 0x0f;
/// The first cluster of the data has this number.
const FIRST: u64 = 2;
/// With so many clusters it is no FAT 12 any more, or no FAT 16.
const FAT_12_END: u64 = 4085;
const FAT_16_END: u64 = 65_525;

/// A file system. Places and sizes are in bytes.
pub(super) struct Fat<'a, S: ?Sized> {
    source: &'a S,
    is_fat_16: bool,
    table_at: u64,
    table: u64,
    data_at: u64,
    cluster: u64,
    clusters: u64,
    root: Vec<u8>,
    label: String,
}

/// A file, as its entry has it.
struct Found {
    cluster: u16,
    length: u32,
}

impl<'a, S: Source + ?Sized> Fat<'a, S> {
    /// The file system on this drive; `None` where there is another, or none.
    pub(super) fn of(source: &'a S) -> io::Result<Option<Self>> {
        let boot = source.bytes(0, 512)?;
        let sector = u64::from(number16(&boot, 11));
        let (per_cluster, reserved, tables) = (u64::from(boot[13]), u64::from(number16(&boot, 14)), boot[16]);
        let entries = number16(&boot, 17);
        let sectors = match number16(&boot, 19) {
            0 => u64::from(number32(&boot, 32)),
            few => u64::from(few),
        };
        let table = u64::from(number16(&boot, 22));
        let is_fat = boot[510..] == [0x55, 0xaa]
            && [512, 1024, 2048, 4096].contains(&sector)
            && per_cluster.is_power_of_two()
            && reserved > 0
            && (1..=2).contains(&tables)
            && (1..=ENTRIES_MAX).contains(&entries)
            && table > 0;
        if !is_fat {
            return Ok(None);
        }
        let root_at = reserved + u64::from(tables) * table;
        let root = usize::from(entries) * ENTRY;
        let data_at = root_at + (root as u64).div_ceil(sector);
        let clusters = sectors.saturating_sub(data_at) / per_cluster;
        if clusters == 0 || clusters >= FAT_16_END {
            return Ok(None);
        }
        let root = source.bytes(root_at * sector, root)?;
        Ok(Some(Self {
            source,
            is_fat_16: clusters >= FAT_12_END,
            table_at: reserved * sector,
            table: table * sector,
            data_at: data_at * sector,
            cluster: per_cluster * sector,
            clusters,
            label: label(&root).unwrap_or_else(|| text(&boot[43..54])),
            root,
        }))
    }

    /// Its label, without blanks at the end.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// The file of this name, whatever its case, in the root directory; `None` where there is none.
    ///
    /// # Errors
    /// It is longer than `most` bytes, or damaged, or cannot be read.
    pub(super) fn file(&self, name: &str, most: u32) -> Result<Option<Vec<u8>>, String> {
        let Some(Found { cluster, length }) = find(&self.root, name) else { return Ok(None) };
        if length > most {
            return Err(format!("{name} has {length} bytes of at most {most}"));
        }
        let unreadable = |error: io::Error| format!("{name} cannot be read: {error}");
        let (mut content, mut at) = (Vec::new(), u64::from(cluster));
        let mut left = u64::from(length);
        while left > 0 {
            if at < FIRST || at >= FIRST + self.clusters {
                return Err(format!("{name} is damaged: it ends before its length"));
            }
            let count = left.min(self.cluster);
            let place = self.data_at + (at - FIRST) * self.cluster;
            let bytes = usize::try_from(count).unwrap_or(usize::MAX);
            content.extend(self.source.bytes(place, bytes).map_err(unreadable)?);
            left -= count;
            if left > 0 {
                at = self.next(at).map_err(unreadable)?;
            }
        }
        Ok(Some(content))
    }

    /// What the table says of a cluster: the next one of its file.
    fn next(&self, cluster: u64) -> io::Result<u64> {
        let at = if self.is_fat_16 { cluster * 2 } else { cluster + cluster / 2 };
        if at + 2 > self.table {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let both = number16(&self.source.bytes(self.table_at + at, 2)?, 0);
        Ok(u64::from(match (self.is_fat_16, cluster % 2) {
            (true, _) => both,
            (false, 0) => both & 0xfff,
            (false, _) => both >> 4,
        }))
    }
}

/// The label that the root directory has.
fn label(root: &[u8]) -> Option<String> {
    let mut entries = root.chunks_exact(ENTRY).take_while(|entry| entry[0] != END);
    let is_label = |entry: &&[u8]| {
        entry[0] != REMOVED && entry[11] != LONG_NAME && entry[11] & (LABEL | DIRECTORY) == LABEL
    };
    entries.find(is_label).map(|entry| text(&entry[..11]))
}

fn find(root: &[u8], name: &str) -> Option<Found> {
    let mut long: Vec<u16> = Vec::new();
    for entry in root.chunks_exact(ENTRY).take_while(|entry| entry[0] != END) {
        if entry[11] == LONG_NAME {
            // The parts of a long name stand before the file, the last part first.
            long = [&units(entry)[..], &long].concat();
            continue;
        }
        let end = long.iter().position(|unit| *unit == 0).unwrap_or(long.len());
        let shown = if end > 0 { String::from_utf16_lossy(&long[..end]) } else { short_name(entry) };
        long.clear();
        let is_file = entry[0] != REMOVED && entry[11] & (LABEL | DIRECTORY) == 0;
        if is_file && shown.eq_ignore_ascii_case(name) {
            return Some(Found { cluster: number16(entry, 26), length: number32(entry, 28) });
        }
    }
    None
}

/// The characters of a part of a long name. What was removed has none.
fn units(entry: &[u8]) -> Vec<u16> {
    let parts = [&entry[1..11], &entry[14..26], &entry[28..32]];
    let all = parts.into_iter().flat_map(|part| part.chunks_exact(2)).map(|pair| number16(pair, 0));
    if entry[0] == REMOVED { Vec::new() } else { all.collect() }
}

/// `NAME.EXT`.
fn short_name(entry: &[u8]) -> String {
    let (name, extension) = (text(&entry[..8]), text(&entry[8..11]));
    if extension.is_empty() { name } else { format!("{name}.{extension}") }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches(['\0', ' ']).to_owned()
}
