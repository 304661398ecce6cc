//! Lines: how messages are separated on the socket.

use std::io::{self, Read};

/// Longest line in bytes, with its line feed.
pub const LINE_MAX: usize = 1 << 20;
/// What is held between lines; a longer line grows it for itself alone.
const USUAL: usize = 8 << 10;

/// A line of more than [`LINE_MAX`] bytes. No message after it can be recognised: give the peer up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line has more than {LINE_MAX} bytes")]
pub struct TooLong;

/// Bytes on their way to becoming lines. It never holds more than [`LINE_MAX`] bytes.
#[derive(Debug, Default)]
pub struct LineBuffer {
    /// What is filled is `start..end`; behind that is room.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes after `start` known to have no line feed.
    searched: usize,
}

impl LineBuffer {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is a whole line.
    ///
    /// # Errors
    /// [`TooLong`] when there is none in as many bytes as a line may have.
    pub fn has_line(&mut self) -> Result<bool, TooLong> {
        let held = &self.bytes[self.start..self.end];
        match held[self.searched..].iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                self.searched += at;
                Ok(true)
            }
            None if held.len() >= LINE_MAX => Err(TooLong),
            None => {
                self.searched = held.len();
                Ok(false)
            }
        }
    }

    /// The next line, without its line feed, if there is a whole one.
    ///
    /// # Errors
    /// [`TooLong`] when there is none in as many bytes as a line may have.
    pub fn line(&mut self) -> Result<Option<&[u8]>, TooLong> {
        if !self.has_line()? {
            return Ok(None);
        }
        let line = self.start..self.start + self.searched;
        self.start = line.end + 1;
        self.searched = 0;
        Ok(Some(&self.bytes[line]))
    }

    /// Room for more bytes, never empty. Call it after [`LineBuffer::line`] said that there is no whole line.
    pub fn room(&mut self) -> &mut [u8] {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end < USUAL && self.bytes.len() != USUAL {
            self.bytes.truncate(USUAL);
            self.bytes.shrink_to_fit();
            self.bytes.resize(USUAL, 0);
        } else if self.end == self.bytes.len() {
            let longer = (self.end * 2).min(LINE_MAX);
            self.bytes.reserve_exact(longer - self.end);
            self.bytes.resize(longer, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// So many bytes of [`LineBuffer::room`] are filled now.
    pub fn filled(&mut self, count: usize) {
        self.end += count;
        debug_assert!(self.end <= self.bytes.len());
    }

    /// Bytes of a line that is not whole.
    pub fn rest(&self) -> usize {
        self.end - self.start
    }

    /// Bytes it holds in memory.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Lines of a blocking source.
#[derive(Debug)]
pub struct LineReader<R> {
    source: R,
    buffer: LineBuffer,
}

impl<R: Read> LineReader<R> {
    /// Lines of `source`.
    pub fn new(source: R) -> Self {
        Self { source, buffer: LineBuffer::new() }
    }

    /// The next line, without its line feed; `None` at the end.
    ///
    /// # Errors
    /// Those of the source; `InvalidData` with [`TooLong`]; `UnexpectedEof` when the source ends within a line.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            let too_long = |error| io::Error::new(io::ErrorKind::InvalidData, error);
            // Asked twice, since the borrow of a line that is returned would outlive the loop.
            if self.buffer.has_line().map_err(too_long)? {
                return self.buffer.line().map_err(too_long);
            }
            match self.source.read(self.buffer.room()) {
                Ok(0) if self.buffer.rest() == 0 => return Ok(None),
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the last line has no end"));
                }
                Ok(count) => self.buffer.filled(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
