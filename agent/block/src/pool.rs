//! Buffers to read into and to make content in, of which the whole process has no more than a fixed amount, however
//! many disks it works on and however large they are.

use crate::aligned::Aligned;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the largest buffer, and of one chunk that is read: what is in flight keeps even a disk with a long way to it
/// busy.
pub(crate) const LARGEST: usize = 1 << 20;
/// Sizes of buffers, and how many bytes may be lent for one of that size to be lent still. The few lanes of the first disks
/// get large ones; with many disks the small ones add up to as much in flight.
const SIZES: [(usize, usize); 2] = [(LARGEST, 4 << 20), (128 * 1024, 10 << 20)];
/// Bytes of one that is lent when there is no room for others, and not counted: a lane never waits for another one.
const SMALL: usize = 64 * 1024;

/// Bytes that are lent.
static LENT: AtomicUsize = AtomicUsize::new(0);

/// A buffer, given back when dropped.
#[derive(Debug)]
pub(crate) struct Lent(Aligned);

/// The largest buffer that there is room for.
pub(crate) fn lend() -> Lent {
    let fits = |&&(size, limit): &&(usize, usize)| {
        let room = |lent: usize| (lent + size <= limit).then_some(lent + size);
        LENT.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_ok()
    };
    Lent(Aligned::new(SIZES.iter().find(fits).map_or(SMALL, |&(size, _)| size)))
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.0.len() > SMALL {
            LENT.fetch_sub(self.0.len(), Ordering::AcqRel);
        }
    }
}

impl Deref for Lent {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_is_limited_and_none_waits() {
        let many: Vec<Lent> = (0..200).map(|_| lend()).collect();
        let counted: usize = many.iter().map(|lent| lent.len()).filter(|&size| size > SMALL).sum();
        assert!(counted <= 10 << 20 && many.iter().all(|lent| lent.len() >= SMALL), "{counted}");
        assert_eq!(many.last().map(|lent| lent.len()), Some(SMALL));
        drop(many);
        // Other tests of this process may hold some, never all.
        assert!(lend().len() > SMALL, "what was given back is lent again");
    }
}
