//! From what a format says to writes of whole MiB, zeroes apart.

use crate::checkpoint::Identity;
use crate::error::ImageError;
use crate::format::{Sink, read_full};
use block::aligned::{Aligned, is_zero};
use std::io::{self, Read};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};

/// Bytes of a write at most. No write crosses a multiple of it.
pub(super) const CHUNK: usize = 1 << 20;
/// Buffers: what is between the decoder and the disk at most.
const BUFFERS: usize = 5;
/// Zeroes that are given to the disk at once at most, so that a cancel does not wait long.
const ZEROES: u64 = 64 << 20;
/// Sectors are no larger.
const LARGEST_SECTOR: usize = 4096;

/// A part of the content, in the order of the file.
#[derive(Clone)]
pub(super) enum Part {
    /// Comes first.
    Begin(Arc<Begin>),
    Data(u64, Arc<Chunk>),
    Zero(u64, u64),
}

/// What the stages behind must know of the image.
pub(super) struct Begin {
    pub(super) image: Identity,
    /// How much of it an earlier session has written.
    pub(super) done: u64,
    /// No part begins or ends, but at the image's end, elsewhere than at a multiple of this.
    pub(super) leaf: usize,
}

/// Bytes in a buffer that goes back when no stage needs it.
pub(super) struct Chunk {
    buffer: Option<Aligned>,
    length: usize,
    home: Sender<Aligned>,
}

impl Chunk {
    /// The first `length` bytes of a buffer, which goes `home` afterwards.
    pub(super) fn new(buffer: Aligned, length: usize, home: Sender<Aligned>) -> Self {
        Chunk { buffer: Some(buffer), length, home }
    }

    /// The bytes, with zeroes up to whole sectors.
    pub(super) fn padded(&self, sector: usize) -> &[u8] {
        self.buffer.as_deref().map_or(&[], |buffer| &buffer[..self.length.next_multiple_of(sector)])
    }
}

impl Deref for Chunk {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.buffer.as_deref().map_or(&[], |buffer| &buffer[..self.length])
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            let _ = self.home.send(buffer);
        }
    }
}

/// Collects the content and gives it to the stages that write and digest it.
pub(super) struct Assembler {
    disk: (String, u64),
    to: [SyncSender<Part>; 2],
    /// What was not said yet.
    begin: Option<Begin>,
    free: (Sender<Aligned>, Receiver<Aligned>),
    /// Where the present chunk begins.
    start: u64,
    present: Option<(Aligned, usize)>,
    zero: Option<(u64, u64)>,
    /// End of the content so far.
    end: u64,
    size: Option<u64>,
}

impl Assembler {
    /// For a disk with this name and so many bytes, and an image of which `done` bytes are on it.
    pub(super) fn new(disk: (String, u64), to: [SyncSender<Part>; 2], image: Identity, done: u64) -> Self {
        let free = channel();
        (0..BUFFERS).for_each(|_| {
            let _ = free.0.send(Aligned::new(CHUNK));
        });
        let begin = Some(Begin { image, done, leaf: CHUNK });
        Assembler { disk, to, begin, free, start: 0, present: None, zero: None, end: 0, size: None }
    }

    fn fits(&mut self, offset: u64, length: u64) -> Result<(), ImageError> {
        let end = offset.checked_add(length).filter(|&end| end <= self.disk.1);
        let (disk, size) = self.disk.clone();
        self.end = self.end.max(end.ok_or(ImageError::TooLarge { image: self.size, disk, size })?);
        Ok(())
    }

    fn send(&mut self, part: &Part) -> Result<(), ImageError> {
        if let Some(begin) = self.begin.take() {
            self.send(&Part::Begin(Arc::new(begin)))?;
        }
        let ended = self.to.iter().any(|to| to.send(part.clone()).is_err());
        if ended { Err(ImageError::Internal("the disk's stage ended".to_owned())) } else { Ok(()) }
    }

    fn flush_data(&mut self) -> Result<(), ImageError> {
        let Some((mut buffer, length)) = self.present.take() else { return Ok(()) };
        if length == CHUNK && is_zero(&buffer) {
            let _ = self.free.0.send(buffer);
            return self.add_zero(self.start, CHUNK as u64);
        }
        self.flush_zero()?;
        let padded = length.next_multiple_of(LARGEST_SECTOR).min(buffer.len());
        buffer[length..padded].fill(0);
        let chunk = Chunk::new(buffer, length, self.free.0.clone());
        self.send(&Part::Data(self.start, Arc::new(chunk)))
    }

    fn flush_zero(&mut self) -> Result<(), ImageError> {
        let Some((offset, length)) = self.zero.take() else { return Ok(()) };
        self.send(&Part::Zero(offset, length))
    }

    fn add_zero(&mut self, offset: u64, length: u64) -> Result<(), ImageError> {
        match &mut self.zero {
            Some((start, present)) if *start + *present == offset && *present + length <= ZEROES => {
                *present += length;
            }
            _ => {
                self.flush_zero()?;
                self.zero = Some((offset, length));
            }
        }
        Ok(())
    }

    /// The content from its first byte to its last, read into the buffers that are written.
    pub(super) fn read_all(
        &mut self,
        input: &mut dyn Read,
        failed: &dyn Fn(io::Error) -> ImageError,
    ) -> Result<(), ImageError> {
        loop {
            let mut buffer = self.free_buffer()?;
            let count = read_full(input, &mut buffer).map_err(failed)?;
            if self.end == 0 && count == 0 {
                return Err(ImageError::Format("it is empty".to_owned()));
            }
            let start = self.end;
            self.fits(start, count as u64)?;
            if count > 0 {
                (self.start, self.present) = (start, Some((buffer, count)));
                self.flush_data()?;
            }
            if count < CHUNK {
                return Ok(());
            }
        }
    }

    fn free_buffer(&self) -> Result<Aligned, ImageError> {
        self.free.1.recv().map_err(|_| ImageError::Internal("the buffers are gone".to_owned()))
    }

    /// All content came: how many bytes the image has.
    pub(super) fn finish(mut self) -> Result<u64, ImageError> {
        self.flush_data()?;
        self.flush_zero()?;
        Ok(self.size.unwrap_or(self.end))
    }
}

impl Sink for Assembler {
    fn size(&mut self, bytes: u64, unit: usize) -> Result<(), ImageError> {
        self.size = Some(bytes);
        self.begin.iter_mut().for_each(|begin| begin.leaf = unit);
        let (disk, size) = self.disk.clone();
        if bytes > size { Err(ImageError::TooLarge { image: Some(bytes), disk, size }) } else { Ok(()) }
    }

    fn data(&mut self, mut offset: u64, mut bytes: &[u8]) -> Result<(), ImageError> {
        self.fits(offset, bytes.len() as u64)?;
        while !bytes.is_empty() {
            let follows =
                self.present.as_ref().is_some_and(|(_, length)| self.start + *length as u64 == offset);
            if !follows || offset.is_multiple_of(CHUNK as u64) {
                self.flush_data()?;
            }
            let (buffer, length) = match self.present.take() {
                Some(present) => present,
                None => {
                    self.start = offset;
                    (self.free_buffer()?, 0)
                }
            };
            let mut buffer = buffer;
            let border = CHUNK - usize::try_from(self.start % CHUNK as u64).unwrap_or(0);
            let count = bytes.len().min(border - length);
            buffer[length..length + count].copy_from_slice(&bytes[..count]);
            self.present = Some((buffer, length + count));
            (offset, bytes) = (offset + count as u64, &bytes[count..]);
        }
        Ok(())
    }

    fn zero(&mut self, mut offset: u64, length: u64) -> Result<(), ImageError> {
        self.fits(offset, length)?;
        self.flush_data()?;
        let end = offset + length;
        while offset < end {
            let count = (end - offset).min(ZEROES);
            self.add_zero(offset, count)?;
            offset += count;
        }
        Ok(())
    }
}
