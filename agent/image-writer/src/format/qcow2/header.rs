//! The header: what the image is, and whether it is one that can be written.

use crate::error::ImageError;

/// First bytes of every qcow2 file.
pub const MAGIC: &[u8] = b"QFI\xfb";
/// Length of the header of version 2.
const V2_LENGTH: usize = 72;
/// Length that version 3 has at least.
const V3_LENGTH: usize = 104;
/// Longest table of the first level that is taken: 512 TiB at 64 KiB a cluster.
const L1_BYTES: u64 = 8 << 20;

/// Incompatible features (version 3).
const DIRTY: u64 = 1;
const CORRUPT: u64 = 1 << 1;
const DATA_FILE: u64 = 1 << 2;
const COMPRESSION: u64 = 1 << 3;
const EXTENDED_L2: u64 = 1 << 4;

/// How compressed clusters are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Deflate without a header.
    Zlib,
    /// Zstandard.
    Zstd,
}

/// What a header says of an image that can be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// 2 or 3.
    pub version: u32,
    /// Bytes of a cluster, as a power of two: 9 to 21.
    pub cluster_bits: u32,
    /// Bytes of the disk.
    pub size: u64,
    /// Where the table of the first level is.
    pub l1_offset: u64,
    /// How many entries it has, as many as the size needs.
    pub l1_entries: usize,
    /// How compressed clusters are packed.
    pub packing: Packing,
}

impl Header {
    /// Bytes of a cluster.
    pub fn cluster(&self) -> usize {
        1 << self.cluster_bits
    }

    /// From the first bytes of the file, [`Header::LENGTH`] of them unless it is shorter.
    ///
    /// # Errors
    /// What makes the image one that cannot be written, by name.
    pub fn parse(bytes: &[u8]) -> Result<Self, ImageError> {
        if bytes.len() < V2_LENGTH || !bytes.starts_with(MAGIC) {
            return Err(corrupt("no header"));
        }
        let version = word(bytes, 4);
        let cluster_bits = word(bytes, 20);
        let (features, length) = match version {
            2 => (0, V2_LENGTH),
            3 if bytes.len() >= V3_LENGTH => (long(bytes, 72), word(bytes, 100) as usize),
            3 => return Err(corrupt("the header is cut off")),
            other => return Err(refused(&format!("version {other} is not supported"))),
        };
        refuse(bytes, features)?;
        if !(9..=21).contains(&cluster_bits) {
            return Err(corrupt("the size of its clusters"));
        }
        if version == 3 && !(V3_LENGTH..=1 << cluster_bits).contains(&length) {
            return Err(corrupt("the length of the header"));
        }
        let kind = if length > V3_LENGTH { bytes.get(V3_LENGTH).copied() } else { Some(0) };
        let packing = match (features & COMPRESSION != 0, kind) {
            (false, Some(0)) => Packing::Zlib,
            (true, Some(1)) => Packing::Zstd,
            _ => return Err(refused("an unknown compression of its clusters is not supported")),
        };
        let (size, l1_offset) = (long(bytes, 24), long(bytes, 40));
        let cluster = 1u64 << cluster_bits;
        let needed = size.div_ceil(cluster).div_ceil(cluster / 8);
        if size == 0 || !size.is_multiple_of(512) {
            return Err(corrupt("the size of the disk"));
        }
        if needed > u64::from(word(bytes, 36)) {
            return Err(corrupt("its first table is shorter than the disk"));
        }
        if needed * 8 > L1_BYTES {
            return Err(refused("a first table of more than 8 MiB is not supported"));
        }
        if l1_offset < cluster || !l1_offset.is_multiple_of(cluster) || l1_offset >= 1 << 56 {
            return Err(corrupt("the place of its first table"));
        }
        let l1_entries = usize::try_from(needed).map_err(|_| corrupt("the size of the disk"))?;
        Ok(Header { version, cluster_bits, size, l1_offset, l1_entries, packing })
    }

    /// How much of the file [`Header::parse`] wants.
    pub const LENGTH: usize = 512;
}

/// What is known and cannot be written, in the order in which an operator would fix it.
fn refuse(bytes: &[u8], features: u64) -> Result<(), ImageError> {
    let known = DIRTY | CORRUPT | DATA_FILE | COMPRESSION | EXTENDED_L2;
    let problem = if long(bytes, 8) != 0 {
        "it has a backing file; merge it: qemu-img convert -O qcow2 -c IMAGE NEW"
    } else if features & DATA_FILE != 0 {
        "its data are in another file; merge it: qemu-img convert -O qcow2 -c IMAGE NEW"
    } else if word(bytes, 32) != 0 {
        "it is encrypted; decrypt it with qemu-img convert"
    } else if features & CORRUPT != 0 {
        "it is marked as corrupt; see qemu-img check -r all"
    } else if features & DIRTY != 0 {
        "it was not closed (dirty); see qemu-img check -r all"
    } else if features & EXTENDED_L2 != 0 {
        "extended L2 entries are not supported; convert it: qemu-img convert -O qcow2 -c IMAGE NEW"
    } else if features & !known != 0 {
        return Err(refused(&format!("incompatible features {:#x} are not supported", features & !known)));
    } else {
        return Ok(());
    };
    Err(refused(problem))
}

pub(in crate::format) fn corrupt(what: &str) -> ImageError {
    ImageError::Format(format!("the qcow2 file is corrupt: {what}"))
}

pub(super) fn refused(why: &str) -> ImageError {
    ImageError::Format(format!("qcow2: {why}"))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |all, &byte| all << 8 | u32::from(byte))
}

pub(super) fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().fold(0, |all, &byte| all << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Version 3, 64 KiB clusters, 1 GiB.
    fn header() -> Vec<u8> {
        let mut bytes = vec![0; 512];
        bytes[..4].copy_from_slice(MAGIC);
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(4, &3u32.to_be_bytes());
        put(20, &16u32.to_be_bytes());
        put(24, &(1u64 << 30).to_be_bytes());
        put(36, &2u32.to_be_bytes());
        put(40, &0x30000u64.to_be_bytes());
        put(100, &112u32.to_be_bytes());
        bytes
    }

    #[test]
    fn a_header_is_read() {
        let parsed = Header::parse(&header()).expect("a header");
        let expected = Header {
            version: 3,
            cluster_bits: 16,
            size: 1 << 30,
            l1_offset: 0x30000,
            l1_entries: 2,
            packing: Packing::Zlib,
        };
        assert_eq!(parsed, expected);
    }

    #[test]
    fn what_cannot_be_written_is_refused_by_name() {
        for (at, value, expected) in [
            (8, 1u64.to_be_bytes().to_vec(), "backing file"),
            (72, 4u64.to_be_bytes().to_vec(), "another file"),
            (32, 2u32.to_be_bytes().to_vec(), "encrypted"),
            (72, 2u64.to_be_bytes().to_vec(), "marked as corrupt"),
            (72, 1u64.to_be_bytes().to_vec(), "dirty"),
            (72, 16u64.to_be_bytes().to_vec(), "extended L2"),
            (72, 64u64.to_be_bytes().to_vec(), "0x40"),
            (72, 8u64.to_be_bytes().to_vec(), "unknown compression"),
            (104, vec![1], "unknown compression"),
            (4, 4u32.to_be_bytes().to_vec(), "version 4"),
            (20, 8u32.to_be_bytes().to_vec(), "size of its clusters"),
            (24, 0u64.to_be_bytes().to_vec(), "size of the disk"),
            (24, (1u64 << 60).to_be_bytes().to_vec(), "shorter than the disk"),
            (36, 1u32.to_be_bytes().to_vec(), "shorter than the disk"),
            (40, 0x30001u64.to_be_bytes().to_vec(), "place of its first table"),
            (100, 10u32.to_be_bytes().to_vec(), "length of the header"),
        ] {
            let mut bytes = header();
            bytes[at..at + value.len()].copy_from_slice(&value);
            let problem = Header::parse(&bytes).expect_err(expected).to_string();
            assert!(problem.contains(expected), "{problem}");
        }
    }

    proptest! {
        #[test]
        fn no_header_breaks_it(changes in prop::collection::vec((0usize..112, any::<u8>()), 0..8), cut in 0usize..512) {
            let mut bytes = header();
            changes.iter().for_each(|&(at, byte)| bytes[at] = byte);
            if let Ok(parsed) = Header::parse(&bytes[..cut]) {
                prop_assert!(parsed.l1_entries as u64 * 8 <= L1_BYTES);
            }
        }
    }
}
