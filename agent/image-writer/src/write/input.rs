//! The download as a stream of bytes for the decoder.

use crate::error::ImageError;
use hyper::body::Bytes;
use image_source::Head;
use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, SyncSender};

/// What the thread that receives passes on.
pub(super) enum Arrived {
    Head(Head),
    Bytes(Bytes),
    Failed(ImageError),
}

/// The stream as it arrives. Its end is the file's end.
pub(super) struct Input {
    from: Receiver<Arrived>,
    present: Bytes,
}

impl Input {
    pub(super) fn new(from: Receiver<Arrived>) -> Self {
        Input { from, present: Bytes::new() }
    }

    /// What the first answer says; comes before all bytes.
    pub(super) fn head(&mut self) -> Result<Head, ImageError> {
        match self.from.recv() {
            Ok(Arrived::Head(head)) => Ok(head),
            Ok(Arrived::Failed(error)) => Err(error),
            Ok(Arrived::Bytes(_)) | Err(_) => Err(ImageError::Internal("no answer".to_owned())),
        }
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.present.is_empty() {
            match self.from.recv() {
                Ok(Arrived::Bytes(bytes)) => self.present = bytes,
                Ok(Arrived::Failed(error)) => return Err(error.into_io()),
                Ok(Arrived::Head(_)) => {}
                Err(_) => break,
            }
        }
        Ok(&self.present)
    }

    fn consume(&mut self, count: usize) {
        let _ = self.present.split_to(count);
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let present = self.fill_buf()?;
        let count = present.len().min(buffer.len());
        buffer[..count].copy_from_slice(&present[..count]);
        self.consume(count);
        Ok(count)
    }
}

/// Sends to a stage; `false` when it has ended.
pub(super) fn send<T>(to: &SyncSender<T>, item: T) -> bool {
    to.send(item).is_ok()
}
