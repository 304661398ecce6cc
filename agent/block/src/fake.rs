//! A disk in memory with faults as data: what real disks do wrong, done on request.

use crate::nvme::SecureErase;
use crate::signature::{Signature, SignatureKind};
use crate::target::Target;
use crate::temperature::Temperature;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Magic that [`FakeDisk::signatures`] recognises at the beginning of a sector.
pub const MAGIC: &[u8; 8] = b"FAKESIGN";

/// What is wrong with a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FakeFault {
    /// Writes that touch these bytes fail with `EIO`.
    WriteError(Range<u64>),
    /// Reads that touch these bytes fail with `EIO`.
    ReadError(Range<u64>),
    /// Writes say that they succeeded and change nothing in these bytes.
    IgnoresWrites(Range<u64>),
    /// Zero-out says that it succeeded and changes nothing.
    IgnoresZeroOut,
    /// Zero-out is refused.
    RefusesZeroOut,
    /// Discard leaves the first and last sector of each request.
    DiscardLeavesEdges,
    /// Format fills the disk with this byte; without this flaw it is refused.
    FormatFills(u8),
    /// Format says that it succeeded and changes nothing.
    FormatDoesNothing,
    /// At most this many bytes, a multiple of the sector size, are written at once.
    ShortWrites(usize),
    /// After this many bytes were written the disk is gone: everything fails with `ENODEV`.
    VanishesAfter(u64),
    /// No more than this many bytes are written in a second, one request after the other.
    Slow(u64),
    /// Every other read or write is interrupted by a signal.
    Interrupts,
    /// From this many bytes written on it is too hot, until it has been asked this often.
    Hot(u64, u64),
}

/// The disk.
#[derive(Debug)]
pub struct FakeDisk {
    content: Mutex<Vec<u8>>,
    block: u32,
    flaws: Vec<FakeFault>,
    written: AtomicU64,
    /// Anything was changed since the last flush: by a write, a discard or a format.
    dirty: AtomicBool,
    durable: AtomicU64,
    asked: AtomicU64,
    requests: AtomicU64,
}

impl FakeDisk {
    /// With the given content, sectors of `block` bytes, and flaws.
    pub fn new(content: Vec<u8>, block: u32, flaws: Vec<FakeFault>) -> Self {
        let [written, durable, asked, requests] = [0; 4].map(AtomicU64::new);
        FakeDisk {
            content: Mutex::new(content),
            block,
            flaws,
            written,
            durable,
            asked,
            requests,
            dirty: AtomicBool::new(false),
        }
    }

    /// The content now.
    pub fn content(&self) -> Vec<u8> {
        self.lock().clone()
    }

    /// Bytes that writes have claimed to write.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// How many of those had been written when the disk was last flushed.
    pub fn flushed(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Whether anything was changed since the last flush.
    pub fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn alive(&self) -> io::Result<()> {
        if self.present() { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ENODEV)) }
    }

    fn uninterrupted(&self) -> io::Result<()> {
        let interrupts = self.has(|flaw| *flaw == FakeFault::Interrupts);
        match interrupts && self.requests.fetch_add(1, Ordering::AcqRel).is_multiple_of(2) {
            true => Err(io::ErrorKind::Interrupted.into()),
            false => Ok(()),
        }
    }

    /// Fill a range with a byte, as the drive's own methods do.
    ///
    /// # Errors
    /// When the range is not on the disk.
    pub fn fill(&self, byte: u8, range: Range<u64>) -> io::Result<()> {
        let range = bounds(&range)?;
        self.lock().get_mut(range).ok_or(io::ErrorKind::InvalidInput)?.fill(byte);
        self.dirty.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether a flaw matches.
    fn has(&self, test: impl Fn(&FakeFault) -> bool) -> bool {
        self.flaws.iter().any(test)
    }
}

fn touch(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

fn bounds(range: &Range<u64>) -> io::Result<Range<usize>> {
    let bound = |value| usize::try_from(value).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    Ok(bound(range.start)?..bound(range.end)?)
}

fn eio() -> io::Error {
    io::Error::from_raw_os_error(libc::EIO)
}

impl Target for FakeDisk {
    fn name(&self) -> String {
        "/dev/fake (serial FAKE)".to_owned()
    }

    fn size(&self) -> u64 {
        self.lock().len() as u64
    }

    fn logical_block(&self) -> u32 {
        self.block
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.alive()?;
        self.uninterrupted()?;
        let range = offset..offset + buffer.len() as u64;
        if self.has(|flaw| matches!(flaw, FakeFault::ReadError(bad) if touch(bad, &range))) {
            return Err(eio());
        }
        buffer.copy_from_slice(self.lock().get(bounds(&range)?).ok_or(io::ErrorKind::InvalidInput)?);
        Ok(buffer.len())
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        self.alive()?;
        self.uninterrupted()?;
        let limit = self.flaws.iter().find_map(|flaw| match flaw {
            FakeFault::ShortWrites(limit) => Some(*limit),
            _ => None,
        });
        let buffer = &buffer[..buffer.len().min(limit.unwrap_or(usize::MAX))];
        let range = offset..offset + buffer.len() as u64;
        if self.has(|flaw| matches!(flaw, FakeFault::WriteError(bad) if touch(bad, &range))) {
            return Err(eio());
        }
        let mut content = self.lock();
        let rate = self.flaws.iter().find_map(|flaw| match flaw {
            FakeFault::Slow(rate) => Some(*rate),
            _ => None,
        });
        if let Some(time) = rate.and_then(|rate| (buffer.len() as u64 * 1_000_000).checked_div(rate)) {
            std::thread::sleep(Duration::from_micros(time));
        }
        self.written.fetch_add(buffer.len() as u64, Ordering::AcqRel);
        self.dirty.store(true, Ordering::Release);
        let before = content.get(bounds(&range)?).ok_or(io::ErrorKind::InvalidInput)?.to_vec();
        content[bounds(&range)?].copy_from_slice(buffer);
        for flaw in &self.flaws {
            if let FakeFault::IgnoresWrites(deaf) = flaw {
                let kept = deaf.start.max(range.start)..deaf.end.min(range.end);
                if kept.start < kept.end {
                    let from = bounds(&(kept.start - range.start..kept.end - range.start))?;
                    content[bounds(&kept)?].copy_from_slice(&before[from]);
                }
            }
        }
        Ok(buffer.len())
    }

    fn temperature(&self) -> Option<Temperature> {
        let (from, times) = self.flaws.iter().find_map(|flaw| match flaw {
            FakeFault::Hot(from, times) => Some((*from, *times)),
            _ => None,
        })?;
        let hot = self.written() >= from && self.asked.fetch_add(1, Ordering::AcqRel) < times;
        Some(Temperature { now: if hot { 75_000 } else { 40_000 }, warning: 70_000 })
    }

    fn zero_out(&self, offset: u64, length: u64) -> io::Result<()> {
        self.alive()?;
        if self.has(|flaw| *flaw == FakeFault::RefusesZeroOut) {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        if self.has(|flaw| *flaw == FakeFault::IgnoresZeroOut) {
            return Ok(());
        }
        self.fill(0, offset..offset + length)
    }

    fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        self.alive()?;
        let edge =
            u64::from(if self.has(|flaw| *flaw == FakeFault::DiscardLeavesEdges) { self.block } else { 0 });
        self.fill(0, offset + edge..(offset + length).saturating_sub(edge).max(offset + edge))
    }

    fn secure_discard(&self, offset: u64, length: u64) -> io::Result<()> {
        self.discard(offset, length)
    }

    fn format(&self, _: SecureErase) -> io::Result<()> {
        self.alive()?;
        if self.has(|flaw| *flaw == FakeFault::FormatDoesNothing) {
            return Ok(());
        }
        let fill = self.flaws.iter().find_map(|flaw| match flaw {
            FakeFault::FormatFills(byte) => Some(*byte),
            _ => None,
        });
        self.fill(fill.ok_or_else(eio)?, 0..self.size())
    }

    fn flush(&self) -> io::Result<()> {
        self.alive()?;
        self.durable.store(self.written(), Ordering::Release);
        self.dirty.store(false, Ordering::Release);
        Ok(())
    }

    fn present(&self) -> bool {
        !self.has(|flaw| matches!(flaw, FakeFault::VanishesAfter(limit) if self.written() >= *limit))
    }

    fn signatures(&self) -> io::Result<Vec<Signature>> {
        self.alive()?;
        let content = self.lock();
        let sectors = content.chunks(self.block as usize).enumerate();
        Ok(sectors
            .filter(|(_, sector)| sector.starts_with(MAGIC))
            .map(|(index, _)| Signature {
                kind: SignatureKind::Other,
                name: "fake".to_owned(),
                label: None,
                uuid: None,
                offset: Some(index as u64 * u64::from(self.block)),
                length: MAGIC.len() as u64,
                range: (0, content.len() as u64),
            })
            .collect())
    }

    fn ranges(&self) -> io::Result<Vec<(u64, u64)>> {
        Ok(vec![(0, self.size())])
    }

    fn forget_partitions(&self) -> io::Result<()> {
        self.alive()
    }
}
