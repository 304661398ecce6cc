//! The parts of the disk that make it bootable: in memory until everything else is verified.

/// Bytes at the beginning: boot code and both partition tables.
pub(crate) const HEAD: u64 = 1 << 20;
/// Bytes at the end that are held at least: more than a backup table of 33 sectors of 4096 bytes.
const TAIL: u64 = 256 << 10;

/// What will be at the beginning and at the end of the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) head: Vec<u8>,
    pub(crate) tail: Vec<u8>,
    /// Where the tail begins, a multiple of 1 MiB.
    pub(crate) tail_start: u64,
}

impl Held {
    /// Of a disk of `size` bytes, zero. `None` for one that is too small for any image.
    pub(crate) fn new(size: u64) -> Option<Self> {
        let tail_start = size.checked_sub(TAIL)? / HEAD * HEAD;
        if tail_start < 2 * HEAD {
            return None;
        }
        let tail = vec![0; usize::try_from(size - tail_start).ok()?];
        Some(Held { head: vec![0; 1 << 20], tail, tail_start })
    }

    /// The held part that `offset` is in, and the place there.
    fn part(&mut self, offset: u64) -> Option<(&mut [u8], usize)> {
        let (part, at) = if offset < HEAD {
            (&mut self.head, offset)
        } else if offset >= self.tail_start {
            (&mut self.tail, offset - self.tail_start)
        } else {
            return None;
        };
        Some((part, usize::try_from(at).ok()?))
    }

    /// Keeps bytes, if they lie in a held part, of which none crosses a border.
    pub(crate) fn take(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let Some((part, at)) = self.part(offset) else { return false };
        match part.get_mut(at..at + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }

    /// Bytes of a held part.
    pub(crate) fn bytes(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let (part, at) = if offset < HEAD {
            (&self.head, offset)
        } else if offset >= self.tail_start {
            (&self.tail, offset - self.tail_start)
        } else {
            return None;
        };
        let at = usize::try_from(at).ok()?;
        part.get(at..at + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_held_and_nothing_else() {
        let size = (10 << 20) + 4096;
        let mut held = Held::new(size).expect("large enough");
        assert_eq!((held.tail_start, held.tail.len()), (9 << 20, (1 << 20) + 4096));
        assert!(held.take(HEAD - 4, b"head") && held.take(size - 4, b"tail"));
        assert!(!held.take(HEAD, b"body"));
        assert_eq!(held.bytes(HEAD - 4, 4), Some(&b"head"[..]));
        assert_eq!((held.bytes(size - 4, 4), held.bytes(HEAD, 4)), (Some(&b"tail"[..]), None));
        assert_eq!(Held::new(2 << 20), None);
    }
}
