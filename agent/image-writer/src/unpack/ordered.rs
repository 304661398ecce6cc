//! What several decoders have unpacked, in the order of the file, and how much memory they may take.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes of a piece of content.
pub(super) const PIECE: usize = 256 << 10;
/// Bytes of content that wait at most, in pieces of [`PIECE`]; the first frame may always have [`AHEAD`] pieces.
const CONTENT: usize = 2 << 20;
/// See [`CONTENT`].
const AHEAD: usize = 2;
/// Packed bytes of all frames that wait at most.
const PACKED: usize = 3 << 20;
/// Frames that wait at most.
const FRAMES: usize = 64;

/// Frames in the order of the file.
#[derive(Default)]
pub(super) struct Ordered {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    frames: VecDeque<Frame>,
    /// Number of the first of them.
    first: u64,
    /// Bytes of content that wait.
    content: usize,
    /// Packed bytes that wait.
    packed: usize,
    /// Buffers for further pieces.
    spare: Vec<Vec<u8>>,
    /// No frame will be added.
    complete: bool,
    /// The reader was dropped.
    closed: bool,
    /// The reader has got the error of a frame.
    failed: bool,
}

#[derive(Default)]
struct Frame {
    pieces: VecDeque<Vec<u8>>,
    ended: Option<io::Result<()>>,
}

impl Ordered {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready`, or the reader is dropped: `None`.
    fn when(&self, ready: impl Fn(&State) -> bool) -> Option<MutexGuard<'_, State>> {
        let waits = |state: &mut State| !state.closed && !ready(state);
        let state = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        (!state.closed).then_some(state)
    }

    /// One more frame: its number.
    pub(super) fn begin(&self) -> Option<u64> {
        let mut state = self.when(|state| state.frames.len() < FRAMES)?;
        state.frames.push_back(Frame::default());
        Some(state.first + state.frames.len() as u64 - 1)
    }

    /// Room for packed bytes.
    pub(super) fn reserve(&self, bytes: usize) -> Option<()> {
        let mut state = self.when(|state| state.packed == 0 || state.packed + bytes <= PACKED)?;
        state.packed += bytes;
        Some(())
    }

    /// Packed bytes that are gone.
    pub(super) fn release(&self, bytes: usize) {
        self.lock().packed -= bytes;
        self.changed.notify_all();
    }

    /// An empty buffer for a piece.
    pub(super) fn buffer(&self) -> Vec<u8> {
        let mut buffer = self.lock().spare.pop().unwrap_or_default();
        buffer.resize(PIECE, 0);
        buffer
    }

    /// Content of a frame.
    pub(super) fn push(&self, number: u64, piece: Vec<u8>) -> Option<()> {
        let mut state = self.when(|state| state.has_room(number))?;
        state.content += PIECE;
        state.frame(number)?.pieces.push_back(piece);
        self.changed.notify_all();
        Some(())
    }

    /// A frame has ended.
    pub(super) fn end(&self, number: u64, how: io::Result<()>) {
        if let Some(frame) = self.lock().frame(number) {
            frame.ended.get_or_insert(how);
        }
        self.changed.notify_all();
    }

    /// No frame follows.
    pub(super) fn complete(&self) {
        self.lock().complete = true;
        self.changed.notify_all();
    }

    /// The reader was dropped.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// The next piece of the file's content, in exchange for the one before; `None` at its end.
    pub(super) fn next(&self, used: Vec<u8>) -> io::Result<Option<Vec<u8>>> {
        let mut state = self.lock();
        if used.capacity() >= PIECE {
            state.content -= PIECE;
            state.spare.push(used);
            self.changed.notify_all();
        }
        loop {
            match state.next() {
                Next::Piece(piece) => {
                    // A decoder may wait for this.
                    self.changed.notify_all();
                    return Ok(Some(piece));
                }
                Next::Frame => self.changed.notify_all(),
                Next::End => return Ok(None),
                Next::Failed(error) => return Err(error),
                Next::Nothing => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

/// What the reader gets.
enum Next {
    Piece(Vec<u8>),
    /// A frame has ended.
    Frame,
    End,
    Failed(io::Error),
    /// It has to wait.
    Nothing,
}

impl State {
    /// Whether a piece of this frame may wait.
    fn has_room(&self, number: u64) -> bool {
        let waiting = self.frames.front().map_or(0, |frame| frame.pieces.len());
        self.content + PIECE <= CONTENT || number == self.first && waiting < AHEAD
    }

    fn next(&mut self) -> Next {
        if self.failed {
            return Next::Failed(io::ErrorKind::BrokenPipe.into());
        }
        let Some(frame) = self.frames.front_mut() else {
            return if self.complete { Next::End } else { Next::Nothing };
        };
        if let Some(piece) = frame.pieces.pop_front() {
            return Next::Piece(piece);
        }
        match frame.ended.take() {
            None => Next::Nothing,
            Some(Ok(())) => {
                self.frames.pop_front();
                self.first += 1;
                Next::Frame
            }
            Some(Err(error)) => {
                self.failed = true;
                Next::Failed(error)
            }
        }
    }

    fn frame(&mut self, number: u64) -> Option<&mut Frame> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.frames.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn content_that_waits_is_bounded_and_the_first_frame_goes_on() {
        let ordered = Ordered::default();
        let (first, second) = (ordered.begin().expect("a frame"), ordered.begin().expect("a frame"));
        let room = |number| ordered.lock().has_room(number);
        for _ in 0..CONTENT / PIECE {
            assert!(room(second));
            ordered.push(second, ordered.buffer()).expect("taken");
        }
        assert!(!room(second));
        for _ in 0..AHEAD {
            assert!(room(first));
            ordered.push(first, ordered.buffer()).expect("taken");
        }
        assert!(!room(first));
        // What its reader has in hand is still in memory.
        let piece = ordered.next(Vec::new()).expect("read").expect("a piece");
        assert!(room(first) && !room(second));
        ordered.next(piece).expect("read").expect("a piece");
        assert!(!room(second), "the first had more than its share");
    }

    #[test]
    fn decoders_at_the_same_time_give_all_pieces_within_the_bound() {
        let (ordered, pushed) = (Arc::new(Ordered::default()), Arc::new(AtomicUsize::new(0)));
        let decoders: Vec<_> = (0..3)
            .map(|_| {
                let (ordered, pushed) = (ordered.clone(), pushed.clone());
                let number = ordered.begin().expect("a frame");
                std::thread::spawn(move || {
                    for _ in 0..40 {
                        let buffer = ordered.buffer();
                        if ordered.push(number, buffer).is_none() {
                            return;
                        }
                        pushed.fetch_add(1, Ordering::SeqCst);
                    }
                    ordered.end(number, Ok(()));
                })
            })
            .collect();
        ordered.complete();
        let mut read = 0;
        let mut used = Vec::new();
        while let Some(piece) = ordered.next(used).expect("read") {
            let ahead = pushed.load(Ordering::SeqCst).saturating_sub(read);
            assert!(ahead <= CONTENT / PIECE + AHEAD + 1, "{ahead}");
            (read, used) = (read + 1, piece);
        }
        assert_eq!(read, 120);
        decoders.into_iter().for_each(|decoder| decoder.join().expect("no panic"));
        // The decoders and the reader have one each.
        assert!(ordered.lock().spare.len() <= CONTENT / PIECE + AHEAD + 4, "and so are the buffers");
    }
}
