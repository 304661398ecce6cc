//! Where a drive keeps its content.

use crate::sys::Map;
use std::sync::{Arc, Mutex};

/// Bytes that stay. Callers keep within [`Medium::size`].
pub trait Medium: Send {
    /// Size in bytes.
    fn size(&self) -> u64;
    /// Copy out from `offset`.
    fn read(&self, offset: u64, bytes: &mut [u8]);
    /// Copy in at `offset`.
    fn write(&self, offset: u64, bytes: &[u8]);
}

/// Memory of this process, which others may look at.
#[derive(Debug, Clone)]
pub struct Private(pub Arc<Mutex<Vec<u8>>>);

impl Private {
    /// `size` bytes of zero.
    pub fn new(size: usize) -> Self {
        Private(Arc::new(Mutex::new(vec![0; size])))
    }

    fn with<T>(&self, look: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

impl Medium for Private {
    fn size(&self) -> u64 {
        self.with(|all| all.len() as u64)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) {
        let start = index(offset);
        self.with(|all| bytes.copy_from_slice(&all[start..start + bytes.len()]));
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        let start = index(offset);
        self.with(|all| all[start..start + bytes.len()].copy_from_slice(bytes));
    }
}

/// A part of memory that another machine maps as well.
#[derive(Debug, Clone)]
pub struct Shared {
    /// All of it.
    pub map: Arc<Map>,
    /// First byte of the part.
    pub start: usize,
    /// Its size in bytes.
    pub size: usize,
}

impl Medium for Shared {
    fn size(&self) -> u64 {
        self.size as u64
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) {
        self.map.read(self.start + index(offset), bytes);
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        self.map.write(self.start + index(offset), bytes);
    }
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
