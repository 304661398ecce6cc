//! A part of a file as the body of an answer: read ahead on other threads, in few buffers.
//!
//! ```text
//!   free buffers ─▶ a thread that may block: read ─▶ hyper: vectored write ─▶ the buffer is free again
//! ```

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, spawn_blocking};

/// Bytes of a buffer, and of a read. Reads end at multiples of it.
const CHUNK: usize = 256 << 10;
/// Buffers of an answer: while one is sent, the next is read. A client that does not read costs no more memory than these.
const BUFFERS: usize = 2;

/// A part of a file. Its error is that of a read, or the end of the file before that of the part.
pub(crate) struct FileBody {
    file: Arc<File>,
    /// The next byte to be read.
    at: u64,
    /// One past the last.
    end: u64,
    /// Bytes that hyper has not got yet.
    left: u64,
    free: UnboundedReceiver<Vec<u8>>,
    home: UnboundedSender<Vec<u8>>,
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

/// A buffer that goes home when hyper has sent all of it.
struct Lent {
    buffer: Vec<u8>,
    home: UnboundedSender<Vec<u8>>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // The answer may have ended before the last of its buffers was sent.
        let _ = self.home.send(std::mem::take(&mut self.buffer));
    }
}

impl FileBody {
    /// `count` bytes from `start` on. Nothing is read before hyper asks for it.
    pub(crate) fn new(file: File, start: u64, count: u64) -> Self {
        let (home, free) = unbounded_channel();
        (0..BUFFERS).for_each(|_| drop(home.send(Vec::new())));
        let end = start.saturating_add(count);
        Self { file: Arc::new(file), at: start, end, left: count, free, home, reading: None }
    }

    /// Begins the next read, where there is something to read and a buffer for it. Else `context` is woken when there is one.
    fn read_ahead(&mut self, context: &mut Context<'_>) {
        if self.reading.is_some() || self.at >= self.end {
            return;
        }
        let Poll::Ready(Some(mut buffer)) = self.free.poll_recv(context) else { return };
        let (file, at) = (self.file.clone(), self.at);
        let length = length_at(at, self.end);
        self.at += length as u64;
        self.reading = Some(spawn_blocking(move || {
            buffer.resize(length, 0);
            file.read_exact_at(&mut buffer, at).map(|()| buffer)
        }));
    }
}

/// Bytes of the read at `at`.
fn length_at(at: u64, end: u64) -> usize {
    let whole = CHUNK as u64 - at % CHUNK as u64;
    usize::try_from(whole.min(end.saturating_sub(at))).unwrap_or(CHUNK)
}

impl HttpBody for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        this.read_ahead(context);
        let Some(reading) = &mut this.reading else {
            return if this.left == 0 { Poll::Ready(None) } else { Poll::Pending };
        };
        let read =
            ready!(Pin::new(reading).poll(context)).unwrap_or_else(|panic| Err(io::Error::other(panic)));
        this.reading = None;
        Poll::Ready(Some(read.map(|buffer| {
            this.left -= buffer.len() as u64;
            this.read_ahead(context);
            Frame::data(Bytes::from_owner(Lent { buffer, home: this.home.clone() }))
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::future::poll_fn;
    use std::io::Write;

    /// A file of so many bytes, no two chunks of which are alike.
    fn file(length: usize) -> (File, Vec<u8>) {
        let bytes: Vec<u8> =
            (0..length).map(|at| u8::try_from((at ^ (at >> 9) ^ (at >> 19)) & 0xff).unwrap()).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        (file, bytes)
    }

    async fn frame(body: &mut FileBody) -> Option<io::Result<Bytes>> {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
        Some(frame.map(|frame| frame.into_data().unwrap()))
    }

    #[tokio::test]
    async fn a_part_of_a_file_is_sent_byte_for_byte() {
        let length = 3 * CHUNK + 17;
        let (file, bytes) = file(length);
        for (start, count) in
            [(0, length), (1, length - 1), (CHUNK, CHUNK), (CHUNK - 1, 2), (length - 1, 1), (9, 0)]
        {
            let mut body = FileBody::new(file.try_clone().unwrap(), start as u64, count as u64);
            let mut sent = Vec::new();
            while let Some(frame) = frame(&mut body).await {
                sent.extend_from_slice(&frame.unwrap());
                assert_eq!(body.size_hint().exact(), Some((count - sent.len()) as u64));
            }
            assert!(body.is_end_stream() && sent == bytes[start..start + count], "{count} from {start}");
        }
    }

    /// A client that reads nothing: hyper keeps what it has got, and asks for more.
    #[tokio::test]
    async fn an_answer_has_few_buffers_and_goes_on_when_one_is_sent() {
        let (file, bytes) = file(4 * CHUNK);
        let mut body = FileBody::new(file, 0, bytes.len() as u64);
        let mut held = Vec::new();
        for _ in 0..BUFFERS {
            held.push(frame(&mut body).await.unwrap().unwrap());
        }
        let more = tokio::time::timeout(std::time::Duration::from_millis(200), frame(&mut body)).await;
        assert!(more.is_err() && body.reading.is_none(), "a third buffer");
        let (first, address) = (held.remove(0), held[0].as_ptr());
        drop(first);
        let next = frame(&mut body).await.unwrap().unwrap();
        assert!(next[..] == bytes[BUFFERS * CHUNK..(BUFFERS + 1) * CHUNK]);
        assert_ne!(next.as_ptr(), address, "the other one is still being sent");
    }

    #[tokio::test]
    async fn a_file_that_became_shorter_is_an_error_and_no_end() {
        let (file, _) = file(2 * CHUNK);
        file.set_len(CHUNK as u64 + 1).unwrap();
        let mut body = FileBody::new(file, 0, 2 * CHUNK as u64);
        assert!(frame(&mut body).await.unwrap().is_ok());
        let error = frame(&mut body).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    proptest! {
        #[test]
        fn reads_cover_a_part_and_end_at_multiples(start in 0..u64::MAX / 2, count in 0..8 * CHUNK as u64) {
            let (mut at, end) = (start, start + count);
            while at < end {
                let length = length_at(at, end);
                prop_assert!(length > 0 && length <= CHUNK);
                at += length as u64;
                prop_assert!(at == end || at % CHUNK as u64 == 0);
            }
            prop_assert_eq!(at, end);
        }
    }
}
