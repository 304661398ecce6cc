//! Buffers to read into and to make content in, of which the whole process has no more than a fixed amount, however
//! many disks it works on and however large they are.

use crate::aligned::Aligned;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of one buffer. Small, so that what was read is compared while it is still in the cache of the processor.
pub(crate) const LARGE: usize = 256 * 1024;
/// Bytes of one that is lent when the large ones are all in use: a lane never waits for another one.
const SMALL: usize = 64 * 1024;
/// Bytes of all large ones together.
const LIMIT: usize = 8 << 20;

/// Bytes of large buffers that are lent.
static LENT: AtomicUsize = AtomicUsize::new(0);

/// A buffer, given back when dropped.
#[derive(Debug)]
pub(crate) struct Lent(Aligned);

/// A buffer of [`LARGE`] bytes, or of [`SMALL`] when there is none.
pub(crate) fn lend() -> Lent {
    let room = |lent: usize| (lent + LARGE <= LIMIT).then_some(lent + LARGE);
    let large = LENT.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_ok();
    Lent(Aligned::new(if large { LARGE } else { SMALL }))
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.0.len() == LARGE {
            LENT.fetch_sub(LARGE, Ordering::AcqRel);
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
    fn large_buffers_are_limited_and_none_waits() {
        let many: Vec<Lent> = (0..200).map(|_| lend()).collect();
        let large = many.iter().filter(|lent| lent.len() == LARGE).count();
        assert!(large <= LIMIT / LARGE && many.iter().all(|lent| lent.len() >= SMALL), "{large}");
        drop(many);
        // Other tests of this process may hold some, never all.
        assert_eq!(lend().len(), LARGE, "what was given back is lent again");
    }
}
