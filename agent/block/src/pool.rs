//! Buffers to read into and to make content in, of which the whole process has no more than a fixed amount, however
//! many disks it works on and however large they are.

use crate::aligned::Aligned;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the largest buffer, and of one chunk that is read: what is in flight keeps even a disk with a long way to it
/// busy.
pub(crate) const LARGEST: usize = 1 << 20;
/// How many bytes may be lent, to all disks together, so that a disk gets a first, a second, any further buffer of that
/// size. One disk gets all it can use; many disks are busy enough with one lane each, and their threads leave the
/// processors to those who move the bytes.
const ROOM: [usize; 3] = [13 << 20, 8 << 20, 4 << 20];
/// The same for a first buffer that is smaller.
const MEDIUM: (usize, usize) = (256 * 1024, 17 << 20);
/// Bytes of the one buffer of a disk where there is no room for others, and not counted: no disk waits for another one.
const SMALL: usize = 64 * 1024;

/// Bytes that are lent.
static LENT: AtomicUsize = AtomicUsize::new(0);

/// A buffer, given back when dropped.
#[derive(Debug)]
pub(crate) struct PoolBuffer(Aligned);

/// The buffers that there is room for, of one disk that can use as many as it has `lanes`; never none.
pub(crate) fn lend(lanes: usize) -> Vec<PoolBuffer> {
    let mut lent: Vec<PoolBuffer> = (0..lanes).map_while(|lane| take(LARGEST, ROOM[lane.min(2)])).collect();
    if lent.is_empty() {
        let (size, limit) = MEDIUM;
        lent.push(take(size, limit).unwrap_or_else(|| PoolBuffer(Aligned::new(SMALL))));
    }
    lent
}

fn take(size: usize, limit: usize) -> Option<PoolBuffer> {
    let room = |lent: usize| (lent + size <= limit).then_some(lent + size);
    LENT.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).ok().map(|_| PoolBuffer(Aligned::new(size)))
}

impl Drop for PoolBuffer {
    fn drop(&mut self) {
        if self.0.len() > SMALL {
            LENT.fetch_sub(self.0.len(), Ordering::AcqRel);
        }
    }
}

impl Deref for PoolBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for PoolBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn what_is_lent_is_limited_and_none_waits() {
        let many: Vec<Vec<PoolBuffer>> = (0..100).map(|_| lend(8)).collect();
        let sizes: Vec<usize> = many.iter().flatten().map(|lent| lent.len()).collect();
        let counted: usize = sizes.iter().filter(|&&size| size > SMALL).sum();
        assert!(counted <= MEDIUM.1 && sizes.iter().sum::<usize>() <= 24 << 20, "{counted}");
        assert!(many.iter().all(|disk| !disk.is_empty()), "every disk has one");
        assert_eq!(many.last().map(|disk| (disk.len(), disk[0].len())), Some((1, SMALL)));
        drop(many);
        // Other tests of this process may hold some, never all.
        assert!(lend(8)[0].len() > SMALL, "what was given back is lent again");
    }

    #[test]
    fn a_disk_alone_gets_all_that_it_can_use() {
        let deadline = Instant::now() + Duration::from_secs(30);
        let sizes = || lend(8).iter().map(|lent| lent.len()).collect::<Vec<_>>();
        // Other tests of this process hold some for a moment.
        while sizes() != [LARGEST; 4] {
            assert!(Instant::now() < deadline, "{:?}", sizes());
            std::thread::yield_now();
        }
    }
}
