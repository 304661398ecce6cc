//! The last bytes of a bundle: by them everything else is found.
//!
//! ```text
//!   0  magic      "ANNEALHWM1"
//!  10  zero       2 bytes
//!  12  manifest   u32, little endian: its length
//!  16  root       u64, little endian: its size
//! ```

use crate::manifest::{MANIFEST_MAX, ROOT_ALIGN, ROOT_MAX};
pub use signing::SIGNATURE;
use std::io::{self, Read, Seek, SeekFrom};

/// Its length.
pub const TRAILER: usize = 24;
const MAGIC: &[u8; 10] = b"ANNEALHWM1";

/// Where everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailer {
    /// Length of the manifest.
    pub manifest: usize,
    /// Size of the root.
    pub root: u64,
}

/// Why a file is no bundle.
#[derive(Debug, thiserror::Error)]
pub enum TrailerError {
    /// Reading it failed.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Something else, or cut off.
    #[error("is not a bundle, or its end is missing")]
    Magic,
    /// Its lengths do not fit.
    #[error("is damaged: {0}")]
    Lengths(&'static str),
}

impl Trailer {
    /// As it is written.
    pub fn encode(self) -> [u8; TRAILER] {
        let mut bytes = [0; TRAILER];
        bytes[..10].copy_from_slice(MAGIC);
        // A manifest has at most 64 KiB.
        let manifest = u32::try_from(self.manifest).unwrap_or(u32::MAX);
        bytes[12..16].copy_from_slice(&manifest.to_le_bytes());
        bytes[16..].copy_from_slice(&self.root.to_le_bytes());
        bytes
    }

    /// Of a file of `size` bytes. Nothing in it is believed: the lengths are within bounds and fill the file exactly.
    pub fn decode(bytes: &[u8; TRAILER], size: u64) -> Result<Self, TrailerError> {
        let [magic @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _] = bytes;
        if magic != MAGIC {
            return Err(TrailerError::Magic);
        }
        if bytes[10..12] != [0, 0] {
            return Err(TrailerError::Lengths("it is of a format that is not known"));
        }
        let manifest = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) as usize;
        let mut root = [0; 8];
        root.copy_from_slice(&bytes[16..]);
        let root = u64::from_le_bytes(root);
        if !(1..=MANIFEST_MAX).contains(&manifest) {
            return Err(TrailerError::Lengths("the length of its manifest"));
        }
        if !(ROOT_ALIGN..=ROOT_MAX).contains(&root) || !root.is_multiple_of(ROOT_ALIGN) {
            return Err(TrailerError::Lengths("the size of its root file system"));
        }
        let trailer = Self { manifest, root };
        if trailer.size() != size {
            return Err(TrailerError::Lengths("its parts are not as long as the file"));
        }
        Ok(trailer)
    }

    /// Size of the whole file.
    pub fn size(self) -> u64 {
        self.root + (self.manifest + SIGNATURE + TRAILER) as u64
    }

    /// Of a file, whose size is returned too.
    pub fn read(file: &mut (impl Read + Seek)) -> Result<Self, TrailerError> {
        let size = file.seek(SeekFrom::End(0))?;
        let at = size.checked_sub(TRAILER as u64).ok_or(TrailerError::Magic)?;
        file.seek(SeekFrom::Start(at))?;
        let mut bytes = [0; TRAILER];
        file.read_exact(&mut bytes)?;
        Self::decode(&bytes, size)
    }
}
