//! Bytes at places: of a drive, or of memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Where a file system is read from.
pub(super) trait Source {
    /// Fill `into` with the bytes from `at` on; less is an error.
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()>;

    /// These bytes.
    fn bytes(&self, at: u64, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.read(at, &mut bytes)?;
        Ok(bytes)
    }
}

impl Source for File {
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(into, at)
    }
}

impl Source for [u8] {
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(at).unwrap_or(usize::MAX);
        let part = from.checked_add(into.len()).and_then(|end| self.get(from..end));
        into.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

pub(super) fn number16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn number32(bytes: &[u8], at: usize) -> u32 {
    u32::from(number16(bytes, at)) | (u32::from(number16(bytes, at + 2)) << 16)
}
