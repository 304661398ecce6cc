//! Old data that can be recognised: every sector says which disk and place it belongs to.
//!
//! ```text
//! byte 0   16             32        40                                            512
//!      TAG | disk's name  | sector  | pseudo-random, from name and sector
//! ```

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Bytes of a sector here, whatever the emulated disk says its own are.
pub const SECTOR: usize = 512;
/// How each filled sector begins.
pub const TAG: &[u8; 16] = b"ANNEAL OLD DATA\n";

/// Makes an image file of `size` bytes full of recognisable data.
///
/// # Errors
/// When `size` is no multiple of 512, the name is longer than 16 bytes, or the file cannot be written.
pub fn fill(file: &Path, name: &str, size: u64) -> Result<()> {
    ensure!(size.is_multiple_of(SECTOR as u64), "{size} bytes are no whole number of sectors");
    ensure!(name.len() <= 16, "disk name {name:?} is longer than 16 bytes");
    let cannot = || format!("cannot write {}", file.display());
    let mut writer = BufWriter::with_capacity(1 << 20, File::create(file).with_context(cannot)?);
    for number in 0..size / SECTOR as u64 {
        writer.write_all(&sector(name, number)).with_context(cannot)?;
    }
    writer.flush().with_context(cannot)
}

/// What [`fill`] writes to a sector.
#[must_use]
pub fn sector(name: &str, number: u64) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    bytes[..16].copy_from_slice(TAG);
    let length = name.len().min(16);
    bytes[16..16 + length].copy_from_slice(&name.as_bytes()[..length]);
    bytes[32..40].copy_from_slice(&number.to_le_bytes());
    let mut state = name.bytes().fold(number ^ 0x9e37_79b9_7f4a_7c15, |seed, byte| {
        seed.rotate_left(7) ^ u64::from(byte).wrapping_mul(0x100_0000_01b3)
    });
    for word in bytes[40..].chunks_exact_mut(8) {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word.copy_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_sectors_are_alike() {
        assert_eq!(sector("a", 1), sector("a", 1));
        assert_ne!(sector("a", 1)[40..], sector("a", 2)[40..]);
        assert_ne!(sector("a", 1)[40..], sector("b", 1)[40..]);
    }

    #[test]
    fn a_file_has_the_size_asked_for() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fill(file.path(), "disk-1", 4096).unwrap();
        let bytes = std::fs::read(file.path()).unwrap();
        assert_eq!(bytes.len(), 4096);
        assert_eq!(bytes[7 * 512..], sector("disk-1", 7));
        assert!(fill(file.path(), "disk-1", 100).is_err());
        assert!(fill(file.path(), "a name that is too long", 512).is_err());
    }
}
