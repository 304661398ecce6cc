//! The form in which a file system travels: gzipped, in base64.

use crate::LARGEST;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::MultiGzDecoder;
use flate2::{Compression, GzBuilder};
use std::io::{Read, Write};

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Why an agent would not take a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PackedError {
    /// Not base64.
    #[error("it is not base64")]
    Base64,
    /// It begins as gzip does and does not go on so.
    #[error("it is not gzip")]
    Gzip,
    /// Nothing is in it.
    #[error("it is empty")]
    Empty,
    /// The file system is larger than agents take.
    #[error("its file system has more than {} MiB", LARGEST >> 20)]
    TooLarge,
}

pub(crate) fn pack(image: &[u8]) -> String {
    // No name and no time: of equal images come equal texts. Writing into memory does not fail.
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    let packed = gzip.write_all(image).and_then(|()| gzip.finish());
    STANDARD.encode(packed.unwrap_or_default())
}

/// Check that agents can unpack a file system that came ready-made. Takes time where it is large, and no memory for it.
///
/// # Errors
/// What is wrong with it.
pub fn check_packed(text: &str) -> Result<(), PackedError> {
    check_bounded(text, LARGEST)
}

fn check_bounded(text: &str, largest: u64) -> Result<(), PackedError> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let bytes = STANDARD.decode(digits).map_err(|_| PackedError::Base64)?;
    let size = if bytes.starts_with(&GZIP) {
        let mut unpacked = MultiGzDecoder::new(&bytes[..]).take(largest + 1);
        std::io::copy(&mut unpacked, &mut std::io::sink()).map_err(|_| PackedError::Gzip)?
    } else {
        bytes.len() as u64
    };
    match size {
        0 => Err(PackedError::Empty),
        size if size > largest => Err(PackedError::TooLarge),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_unpack_is_taken_and_bounded() {
        assert_eq!(check_packed(&pack(b"iso")), Ok(()));
        assert_eq!(check_packed(&STANDARD.encode(b"plain")), Ok(()));
        let lines = pack(b"iso").replace("A", "A\n ");
        assert_eq!(check_packed(&lines), Ok(()));
        assert_eq!(check_bounded(&pack(&[0; 5000]), 5000), Ok(()));
        assert_eq!(check_bounded(&pack(&[0; 5001]), 5000), Err(PackedError::TooLarge));
        assert_eq!(check_bounded(&STANDARD.encode([0; 5001]), 5000), Err(PackedError::TooLarge));
        assert_eq!(check_packed("hunter2"), Err(PackedError::Base64));
        assert_eq!(check_packed(" "), Err(PackedError::Empty));
        assert_eq!(check_packed(&pack(b"")), Err(PackedError::Empty));
        assert_eq!(check_packed(&STANDARD.encode([0x1f, 0x8b, 8])), Err(PackedError::Gzip));
    }
}
