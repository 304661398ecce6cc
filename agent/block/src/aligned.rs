//! Buffers for direct I/O.

use memmap2::MmapMut;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

/// At least as strict as any device's requirement: 64 KiB is the largest logical block Linux takes.
const ALIGNMENT: usize = 64 * 1024;

/// Bytes in one write of zeroes: few enough to stay in the cache of a processor and to be soon done on a slow disk.
pub const ZEROES_LENGTH: usize = 1 << 20;

/// A zeroed buffer that begins on a 64 KiB boundary, as O_DIRECT wants it. Its pages are its own and go back to the
/// system with it: malloc would keep those of many disks for later.
#[derive(Debug)]
pub struct Aligned {
    store: MmapMut,
    start: usize,
    length: usize,
}

impl Aligned {
    /// `length` bytes of zero.
    ///
    /// # Panics
    /// When there is no memory for them.
    pub fn new(length: usize) -> Self {
        let store = MmapMut::map_anon(length + ALIGNMENT);
        let store = store.unwrap_or_else(|error| panic!("no memory for a buffer of {length} bytes: {error}"));
        // `align_offset` may decline in theory; the beginning is then as good as any and the kernel says EINVAL.
        let start = Some(store.as_ptr().align_offset(ALIGNMENT)).filter(|&at| at <= ALIGNMENT).unwrap_or(0);
        Aligned { store, start, length }
    }
}

impl Deref for Aligned {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.store[self.start..self.start + self.length]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.store[self.start..self.start + self.length]
    }
}

/// The zeroes that every disk is overwritten with: one buffer for the whole process.
pub fn zeroes() -> &'static [u8] {
    static ZEROES: OnceLock<Aligned> = OnceLock::new();
    ZEROES.get_or_init(|| Aligned::new(ZEROES_LENGTH))
}

/// Whether all bytes are zero. Written so that the compiler uses vector instructions.
pub fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(4096).all(|page| page.iter().fold(0, |seen, &byte| seen | byte) == 0)
}

/// Whether all bytes are the same.
pub fn is_uniform(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|first| bytes.iter().all(|byte| byte == first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_zero() {
        let buffer = Aligned::new(1000);
        assert_eq!((buffer.as_ptr() as usize % ALIGNMENT, buffer.len()), (0, 1000));
        assert!(is_zero(zeroes()) && (zeroes().as_ptr() as usize).is_multiple_of(ALIGNMENT));
    }

    #[test]
    fn one_bit_anywhere_is_not_zero() {
        for at in [0, 1, 4095, 4096, 9999] {
            let mut bytes = vec![0; 10_000];
            bytes[at] = 0x80;
            assert!(!is_zero(&bytes), "byte {at}");
        }
    }
}
