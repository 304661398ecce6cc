//! Memory shared with the kernel or with another machine. The only unsafe code of the rig.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

/// A shared mapping of a file or device, gone when this is dropped. Accesses outside of it panic.
#[derive(Debug)]
pub struct Map {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to the process and not to a thread, and is only accessed by copies and atomics.
unsafe impl Send for Map {}
// SAFETY: as above. The other side may change bytes at any time anyway; nothing here forms a reference
// to them but atomics.
unsafe impl Sync for Map {}

impl Map {
    /// The first `length` bytes of `file`, to be read and written.
    ///
    /// # Errors
    /// When the kernel does not map it.
    pub fn new(file: &File, length: usize) -> io::Result<Self> {
        let size = NonZeroUsize::new(length).ok_or(io::ErrorKind::InvalidInput)?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses the place, so that nothing of ours is replaced.
        let start = unsafe { mmap(None, size, protection, MapFlags::MAP_SHARED, file, 0) }?;
        Ok(Map { start: start.cast(), length })
    }

    /// Bytes mapped.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Never: an empty mapping cannot be made.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Where `length` bytes at `offset` are.
    fn at(&self, offset: usize, length: usize) -> *mut u8 {
        let end = offset.checked_add(length);
        assert!(end.is_some_and(|end| end <= self.length), "{length} bytes at {offset} of {}", self.length);
        // SAFETY: within the mapping, as was just checked.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Copy out.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        let from = self.at(offset, bytes.len());
        // SAFETY: `at` checked the range; `bytes` is memory of this process that the mapping cannot overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Copy in.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: as in `read`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// A number that the other side writes; what it wrote before is seen after this.
    pub fn load(&self, offset: usize) -> u32 {
        self.atomic(offset).load(Ordering::Acquire)
    }

    /// A number that the other side reads; it sees what was written before.
    pub fn store(&self, offset: usize, value: u32) {
        self.atomic(offset).store(value, Ordering::Release);
    }

    fn atomic(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4), "{offset} is not aligned");
        let at = self.at(offset, 4);
        // SAFETY: within the mapping and aligned (a mapping begins at a page); it lives as long as `self`.
        unsafe { AtomicU32::from_ptr(at.cast()) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: this mapping was made by `new` and nothing refers to it any more.
        let _ = unsafe { munmap(self.start.cast(), self.length) };
    }
}
