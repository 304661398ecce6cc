//! What the tables said and has not passed yet. Pure, and bounded.

use super::header::{Header, corrupt, long, refused};
use crate::error::ImageError;
use std::collections::BTreeMap;

/// How many places may be waited for: some 10 MB of memory.
const PLACES: usize = 200_000;

/// Bits of an entry of the second level.
const COMPRESSED: u64 = 1 << 62;
const ZERO: u64 = 1;
/// Bits of an offset.
const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;

/// A part of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// A compressed cluster: where in the file, how many bytes at most, and where on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) host: u64,
    pub(super) length: usize,
    pub(super) guest: u64,
}

/// The tables of an image as far as they are known.
pub(super) struct Map {
    header: Header,
    /// Second-level tables that were not read yet, by their place in the file; the parts of the disk that each maps.
    tables: BTreeMap<u64, Vec<u32>>,
    first_known: bool,
    /// Clusters by their places in the file and on the disk; how many in a row.
    clusters: BTreeMap<(u64, u64), u32>,
    packed: BTreeMap<(u64, u64), usize>,
}

impl Map {
    pub(super) fn new(header: Header) -> Self {
        Map {
            header,
            tables: BTreeMap::new(),
            first_known: false,
            clusters: BTreeMap::new(),
            packed: BTreeMap::new(),
        }
    }

    /// Whether all tables were read.
    pub(super) fn complete(&self) -> bool {
        self.first_known && self.tables.is_empty()
    }

    /// Whether the first-level table was read.
    pub(super) fn first_known(&self) -> bool {
        self.first_known
    }

    /// What should have come and did not.
    pub(super) fn awaited(&self) -> Option<u64> {
        let first = [self.tables.keys().next(), self.clusters.keys().next().map(|(host, _)| host)];
        let packed = self.packed.keys().next().map(|(host, _)| host);
        first.into_iter().flatten().chain(packed).min().copied()
    }

    /// The table of the first level: what of the disk is zero.
    pub(super) fn first(&mut self, table: &[u8]) -> Result<Vec<Extent>, ImageError> {
        let cluster = self.header.cluster() as u64;
        let part = cluster * (cluster / 8);
        let mut zero = Vec::new();
        for (number, at) in (0u32..).zip((0..self.header.l1_entries * 8).step_by(8)) {
            let host = long(table, at) & OFFSET;
            if host == 0 {
                let offset = u64::from(number) * part;
                push(&mut zero, offset, part.min(self.header.size - offset));
            } else if host < cluster || !host.is_multiple_of(cluster) {
                return Err(corrupt("the place of a second table"));
            } else {
                self.tables.entry(host).or_default().push(number);
            }
        }
        self.first_known = true;
        Ok(zero)
    }

    /// Places of the second-level tables that were not read yet.
    pub(super) fn tables(&self) -> Vec<u64> {
        self.tables.keys().copied().collect()
    }

    /// The first of them in the file.
    pub(super) fn first_table(&self) -> Option<u64> {
        self.tables.keys().next().copied()
    }

    /// The table of the second level at `host`: what of the disk is zero.
    pub(super) fn second(&mut self, host: u64, table: &[u8]) -> Result<Vec<Extent>, ImageError> {
        let mut zero = Vec::new();
        if table.len() < self.header.cluster() {
            return Err(corrupt("a second table is cut off"));
        }
        for number in self.tables.remove(&host).unwrap_or_default() {
            self.part(number, table, &mut zero)?;
        }
        if self.clusters.len() + self.packed.len() > PLACES {
            return Err(refused(
                "its clusters are too scattered; put them in order: qemu-img convert -O qcow2 -c IMAGE NEW",
            ));
        }
        Ok(zero)
    }

    /// One part of the disk as a table maps it.
    fn part(&mut self, number: u32, table: &[u8], zero: &mut Vec<Extent>) -> Result<(), ImageError> {
        let cluster = self.header.cluster() as u64;
        let start = u64::from(number) * cluster * (cluster / 8);
        // Of the clusters in a row in the file and on the disk.
        let mut row: Option<(u64, u64, u32)> = None;
        for (guest, entry) in
            (start..self.header.size).step_by(self.header.cluster()).zip(table.chunks_exact(8))
        {
            let entry = long(entry, 0);
            let length = cluster.min(self.header.size - guest);
            if entry & COMPRESSED != 0 {
                let packed = self.packed_entry(entry, guest)?;
                self.packed.insert((packed.host, guest), packed.length);
                continue;
            }
            let host = entry & OFFSET;
            if host == 0 || self.header.version >= 3 && entry & ZERO != 0 {
                push(zero, guest, length);
            } else if host < cluster || !host.is_multiple_of(cluster) {
                return Err(corrupt("the place of a cluster"));
            } else {
                row = match row {
                    Some((first, on, count))
                        if first + cluster * u64::from(count) == host
                            && on + cluster * u64::from(count) == guest =>
                    {
                        Some((first, on, count + 1))
                    }
                    other => {
                        other.into_iter().for_each(|(first, on, count)| self.add(first, on, count));
                        Some((host, guest, 1))
                    }
                };
            }
        }
        row.into_iter().for_each(|(first, on, count)| self.add(first, on, count));
        Ok(())
    }

    fn add(&mut self, host: u64, guest: u64, count: u32) {
        self.clusters.insert((host, guest), count);
    }

    fn packed_entry(&self, entry: u64, guest: u64) -> Result<Packed, ImageError> {
        let bits = 62 - (self.header.cluster_bits - 8);
        let host = entry & ((1 << bits) - 1);
        let sectors = (entry & (COMPRESSED - 1)) >> bits;
        let length = (sectors + 1) * 512 - (host & 511);
        if host < self.header.cluster() as u64 || host >= 1 << 56 {
            return Err(corrupt("the place of a compressed cluster"));
        }
        let length = usize::try_from(length).map_err(|_| corrupt("the length of a compressed cluster"))?;
        Ok(Packed { host, length, guest })
    }

    /// The clusters of the file that begin before `end` and have a place on the disk, taken out, first in the file first:
    /// one at a time as (host, guest).
    pub(super) fn next_cluster(&mut self, end: u64) -> Option<(u64, u64)> {
        let ((host, guest), count) = self.clusters.first_key_value().map(|(key, count)| (*key, *count))?;
        if host >= end {
            return None;
        }
        self.clusters.pop_first();
        if count > 1 {
            let cluster = self.header.cluster() as u64;
            self.clusters.insert((host + cluster, guest + cluster), count - 1);
        }
        Some((host, guest))
    }

    /// The next compressed cluster whose last byte is before `end`, taken out.
    pub(super) fn next_packed(&mut self, end: u64, file_ended: bool) -> Option<Packed> {
        let ((host, guest), length) = self.packed.first_key_value().map(|(key, length)| (*key, *length))?;
        if host >= end || !file_ended && host + length as u64 > end {
            return None;
        }
        self.packed.pop_first();
        Some(Packed { host, length, guest })
    }
}

/// One more extent, joined with the last where they touch.
fn push(extents: &mut Vec<Extent>, offset: u64, length: u64) {
    match extents.last_mut() {
        Some(last) if last.offset + last.length == offset => last.length += length,
        _ => extents.push(Extent { offset, length }),
    }
}
