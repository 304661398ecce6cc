//! The download as a stream of bytes for the decoder, and small files as a whole.

use super::progress::Watch;
use crate::error::ImageError;
use crate::source::Receiver as Receives;
use crate::source::{Fetch, Head, Source};
use hyper::body::Bytes;
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

/// Runs a fetch on a runtime of its own, in this thread.
pub(super) fn fetch(source: &Source, receiver: &mut dyn Receives) -> Result<(), ImageError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ImageError::Internal(error.to_string()))?;
    runtime.block_on(async { Fetch::new(source)?.run(receiver).await })
}

/// A whole file of at most `limit` bytes.
pub(super) fn small(source: &Source, limit: usize, watch: &dyn Watch) -> Result<Vec<u8>, ImageError> {
    struct Small<'a> {
        bytes: Vec<u8>,
        limit: usize,
        source: &'a Source,
        watch: &'a dyn Watch,
    }
    impl Receives for Small<'_> {
        fn head(&mut self, _: &Head) -> Result<(), ImageError> {
            Ok(())
        }
        fn bytes(&mut self, bytes: Bytes) -> Result<(), ImageError> {
            self.bytes.extend_from_slice(&bytes);
            if self.bytes.len() > self.limit {
                let problem = format!("it has more than {} bytes", self.limit);
                return Err(ImageError::Fetch { url: self.source.url.masked(), problem });
            }
            Ok(())
        }
        fn note(&mut self, problem: &str) {
            self.watch.note(problem);
        }
        fn cancelled(&self) -> bool {
            self.watch.cancelled()
        }
    }
    let mut small = Small { bytes: Vec::new(), limit, source, watch };
    fetch(source, &mut small)?;
    Ok(small.bytes)
}

/// Sends to a stage; `false` when it has ended.
pub(super) fn send<T>(to: &SyncSender<T>, item: T) -> bool {
    to.send(item).is_ok()
}
