//! The stage that writes, and the reading back of what it wrote.

use super::assemble::{Begin, CHUNK, Chunk, Part};
use super::disk;
use super::progress::{Meter, Phase, Watch};
use super::request::Request;
use super::shared::{Shared, Streamed};
use crate::checkpoint::Checkpoint;
use crate::digest::LeafSum;
use crate::error::ImageError;
use crate::hold::{HEAD, Held};
use crate::table::refuse_sector_size;
use block::Target;
use block::aligned::Aligned;
use image_source::Algorithm;
use image_source::Digest;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::time::{Duration, Instant};

/// Between two checkpoints at most.
const CHECKPOINT: Duration = Duration::from_secs(1);
/// Buffers of the read-back.
const BUFFERS: usize = 4;

/// Writes parts as they come, and keeps those that are held.
pub(super) struct Drain<'a> {
    disk: &'a dyn Target,
    held: Held,
    shared: &'a Shared,
    begin: Option<Arc<Begin>>,
    request: &'a Request,
    /// Bytes of the content that came.
    passed: u64,
    /// Bytes that were written now.
    written: u64,
    /// Time and [`Drain::passed`] of the last checkpoint.
    last: (Instant, u64),
}

impl<'a> Drain<'a> {
    pub(super) fn new(disk: &'a dyn Target, held: Held, shared: &'a Shared, request: &'a Request) -> Self {
        Drain { disk, held, shared, begin: None, request, passed: 0, written: 0, last: (Instant::now(), 0) }
    }

    /// Until all parts came: what is held, and how many bytes were written.
    pub(super) fn run(mut self, parts: Receiver<Part>) -> Result<(Held, u64), ImageError> {
        for part in &parts {
            self.shared.stopped()?;
            match part {
                Part::Begin(begin) => self.begin(begin)?,
                Part::Data(offset, chunk) => {
                    let sector = self.disk.logical_block() as usize;
                    if offset == 0 {
                        refuse_sector_size(&chunk, sector)?;
                    }
                    if !self.held.take(offset, &chunk) && self.fresh(chunk.len() as u64) {
                        self.aligned(offset)?;
                        disk::write_all(self.disk, chunk.padded(sector), offset)?;
                    }
                    self.count(chunk.len() as u64);
                }
                Part::Zero(offset, length) => {
                    self.zero(offset, length)?;
                    self.count(length);
                }
            }
            self.checkpoint()?;
        }
        disk::flush(self.disk)?;
        Ok((self.held, self.written))
    }

    /// Before the first byte: nothing that was on the disk is to be booted or recognised while this one is written.
    fn begin(&mut self, begin: Arc<Begin>) -> Result<(), ImageError> {
        let head = Aligned::new(self.held.head.len());
        disk::write_all(self.disk, &head, 0)?;
        if begin.done == 0 {
            disk::zero(self.disk, self.held.tail_start, self.held.tail.len() as u64)?;
        }
        disk::flush(self.disk)?;
        self.begin = Some(begin);
        Ok(())
    }

    /// Whether the next so many bytes are not on the disk yet.
    fn fresh(&mut self, length: u64) -> bool {
        let fresh = self.begin.as_ref().is_none_or(|begin| self.passed + length > begin.done);
        if fresh {
            self.written += length;
        }
        fresh
    }

    fn count(&mut self, length: u64) {
        self.passed += length;
        self.shared.written.store(self.passed, Ordering::Release);
    }

    fn aligned(&self, offset: u64) -> Result<(), ImageError> {
        let sector = self.disk.logical_block();
        if offset.is_multiple_of(u64::from(sector)) {
            return Ok(());
        }
        Err(ImageError::Format(format!("its clusters are smaller than the disk's sectors of {sector} bytes")))
    }

    /// Of the body only: what is held is zero unless it was given something else.
    fn zero(&mut self, offset: u64, length: u64) -> Result<(), ImageError> {
        let (start, end) = (offset.max(HEAD), (offset + length).min(self.held.tail_start));
        if start >= end || !self.fresh(length) {
            return Ok(());
        }
        self.aligned(start)?;
        let end = end.next_multiple_of(u64::from(self.disk.logical_block()));
        disk::zero(self.disk, start, end - start)
    }

    /// From time to time: what was written until now is on the disk.
    fn checkpoint(&mut self) -> Result<(), ImageError> {
        let (Some(begin), Some(known)) = (&self.begin, &self.request.disk) else { return Ok(()) };
        let soon =
            self.passed - self.last.1 < self.request.checkpoint_every && self.last.0.elapsed() < CHECKPOINT;
        if self.passed <= begin.done || soon {
            return Ok(());
        }
        disk::flush(self.disk)?;
        self.last = (Instant::now(), self.passed);
        self.shared.checkpoint(Checkpoint {
            image: begin.image.clone(),
            disk: known.clone(),
            size: self.disk.size(),
            written: self.passed,
        });
        Ok(())
    }
}

/// What the disk returned.
pub(super) struct ReadBack {
    pub(super) bytes: u64,
    pub(super) sum: LeafSum,
    pub(super) sha256: String,
}

/// Reads the disk from its first byte to the image's last and compares it with what was written. What is held is taken
/// from memory.
pub(super) fn read_back(
    disk: &dyn Target,
    streamed: &Streamed,
    watch: &dyn Watch,
) -> Result<ReadBack, ImageError> {
    let (home, free) = channel();
    (0..BUFFERS).for_each(|_| {
        let _ = home.send(Aligned::new(CHUNK));
    });
    let (to_sum, to_add) = sync_channel::<(u64, Arc<Chunk>)>(BUFFERS);
    let (to_digest, to_update) = sync_channel::<Arc<Chunk>>(BUFFERS);
    let mut sum = LeafSum::new(streamed.sum.leaf());
    let mut digest = Digest::new(Algorithm::Sha256);
    let bytes = std::thread::scope(|scope| {
        let (sum, digest) = (&mut sum, &mut digest);
        let adding = scope.spawn(move || to_add.iter().for_each(|(offset, chunk)| sum.add(offset, &chunk)));
        let updating = scope.spawn(move || to_update.iter().for_each(|chunk| digest.update(&chunk)));
        let read = read_all(streamed, watch, |offset, length| {
            let lost = || ImageError::Internal("a digest of the read-back ended".to_owned());
            let mut buffer = free.recv().map_err(|_| lost())?;
            match streamed.held.bytes(offset, length) {
                Some(held) => buffer[..length].copy_from_slice(held),
                None => {
                    let sectors = length.next_multiple_of(disk.logical_block() as usize);
                    disk::read(disk, &mut buffer[..sectors], offset)?;
                }
            }
            let chunk = Arc::new(Chunk::new(buffer, length, home.clone()));
            to_sum.send((offset, chunk.clone())).map_err(|_| lost())?;
            to_digest.send(chunk).map_err(|_| lost())
        });
        drop((to_sum, to_digest));
        let panicked = |_| ImageError::Internal("the read-back panicked".to_owned());
        let digested = adding.join().and(updating.join()).map_err(panicked);
        read.and_then(|bytes| digested.map(|()| bytes))
    })?;
    if sum != streamed.sum {
        let what = "the digests of what was written and of what was read back differ".to_owned();
        return Err(ImageError::ReadBack { disk: disk.name(), what });
    }
    Ok(ReadBack { bytes, sum, sha256: digest.finish() })
}

fn read_all(
    streamed: &Streamed,
    watch: &dyn Watch,
    mut read: impl FnMut(u64, usize) -> Result<(), ImageError>,
) -> Result<u64, ImageError> {
    let (mut meter, mut offset, mut reported) = (Meter::default(), 0, Instant::now());
    while offset < streamed.size {
        let border = streamed.size.min(offset + CHUNK as u64);
        read(offset, usize::try_from(border - offset).unwrap_or(CHUNK))?;
        offset = border;
        if reported.elapsed() > Duration::from_millis(200) || offset == streamed.size {
            reported = Instant::now();
            let (received, size) = (streamed.downloaded, Some(streamed.size));
            watch.progress(meter.progress(Phase::ReadingBack, (received, offset), offset, size));
            if watch.cancelled() {
                return Err(ImageError::Cancelled);
            }
        }
    }
    Ok(offset)
}
