//! Zstandard frames, decoded at the same time.
//!
//! ```text
//!   input ──▶ splitter: where does a frame end? ──▶ whole frames ──▶ decoders ──▶ Ordered ──▶ Read
//!                  └── a frame that is too large is decoded here, as it arrives ────┘
//! ```

use super::ordered::Ordered;
use super::scan::Scan;
use crate::pool::Pool;
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::thread::JoinHandle;
use zstd::stream::raw::{DParameter, Decoder, Operation};

/// Largest window of a decoder (`super::WINDOW`), as the power of two that zstd takes.
pub(super) const WINDOW_LOG: u32 = 26;
/// Packed bytes of a frame that is decoded aside.
const FRAME: usize = 3 << 20;
/// Its window at most: there are several at the same time.
const WINDOW: u64 = 2 << 20;

/// The content of all frames.
pub(super) struct Frames {
    ordered: Arc<Ordered>,
    piece: Vec<u8>,
    at: usize,
    splitter: Option<JoinHandle<()>>,
}

impl Frames {
    /// With so many decoders.
    ///
    /// # Errors
    /// When a decoder cannot be made.
    pub(super) fn new(count: usize, input: impl BufRead + Send + 'static) -> io::Result<Self> {
        let ordered = Arc::new(Ordered::default());
        let pool = Pool::new(count, count, || {
            let (ordered, mut own) = (ordered.clone(), decoder().ok());
            move |job: Job| job.run(&ordered, own.as_mut())
        })?;
        let mut splitter = Splitter { input, ordered: ordered.clone(), pool, own: decoder()? };
        let thread = std::thread::Builder::new().name("frames".to_owned()).spawn(move || splitter.run())?;
        Ok(Frames { ordered, piece: Vec::new(), at: 0, splitter: Some(thread) })
    }
}

fn decoder() -> io::Result<Decoder<'static>> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
    Ok(decoder)
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            let used = std::mem::take(&mut self.piece);
            self.at = 0;
            match self.ordered.next(used)? {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.piece.len() - self.at);
        buffer[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.ordered.close();
        // It waits for the mirror at most as long as the thread that receives does.
        let _ = self.splitter.take().map(JoinHandle::join);
    }
}

/// The reader was dropped.
struct Closed;

/// Why no more content comes.
enum Stop {
    Closed,
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Failed(error)
    }
}

impl From<Closed> for Stop {
    fn from(_: Closed) -> Self {
        Stop::Closed
    }
}

/// Content of one frame. That it has ended is said in any case.
struct Output<'a> {
    ordered: &'a Ordered,
    number: u64,
    piece: Vec<u8>,
    filled: usize,
}

impl<'a> Output<'a> {
    fn new(ordered: &'a Ordered, number: u64) -> Self {
        Output { ordered, number, piece: ordered.buffer(), filled: 0 }
    }

    /// What `bytes` unpack to: how many of them were used, and whether the frame has ended.
    fn unpack(&mut self, decoder: &mut Decoder<'_>, bytes: &[u8]) -> Result<(usize, bool), Stop> {
        let mut at = 0;
        loop {
            let status = decoder.run_on_buffers(&bytes[at..], &mut self.piece[self.filled..])?;
            (at, self.filled) = (at + status.bytes_read, self.filled + status.bytes_written);
            let full = self.filled == self.piece.len();
            if full {
                self.push()?;
            }
            if status.remaining == 0 {
                return Ok((at, true));
            }
            if at == bytes.len() && !full {
                return Ok((at, false));
            }
        }
    }

    fn push(&mut self) -> Result<(), Closed> {
        if self.filled == 0 {
            return Ok(());
        }
        let mut piece = std::mem::take(&mut self.piece);
        piece.truncate(std::mem::take(&mut self.filled));
        self.ordered.push(self.number, piece).ok_or(Closed)?;
        self.piece = self.ordered.buffer();
        Ok(())
    }

    /// Gives the last piece, and says how the frame ended.
    fn end(mut self, how: Result<(), Stop>) {
        let how = match how {
            Ok(()) => self.push().map_err(Stop::from),
            failed => failed,
        };
        let how = how.map_err(|stop| match stop {
            Stop::Closed => io::ErrorKind::BrokenPipe.into(),
            Stop::Failed(error) => error,
        });
        self.ordered.end(self.number, how);
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        // Of a frame whose end was said this is not taken.
        self.ordered.end(self.number, Err(io::Error::other("a decoder stopped")));
    }
}

/// A whole frame.
struct Job {
    number: u64,
    pieces: Vec<Vec<u8>>,
}

impl Job {
    fn run(self, ordered: &Ordered, decoder: Option<&mut Decoder<'_>>) {
        let mut output = Output::new(ordered, self.number);
        let how = match decoder {
            Some(decoder) => unpack_whole(&mut output, decoder, self.pieces, ordered),
            None => Err(Stop::Failed(io::Error::other("no decoder"))),
        };
        output.end(how);
    }
}

fn unpack_whole(
    output: &mut Output<'_>,
    decoder: &mut Decoder<'_>,
    pieces: Vec<Vec<u8>>,
    ordered: &Ordered,
) -> Result<(), Stop> {
    decoder.reinit()?;
    let mut ended = false;
    for piece in pieces {
        if ended {
            return Err(too_short());
        }
        let (used, last) = output.unpack(decoder, &piece)?;
        if used < piece.len() {
            return Err(too_short());
        }
        ended = last;
        ordered.release(piece.len());
    }
    if ended { Ok(()) } else { Err(Stop::Failed(io::ErrorKind::UnexpectedEof.into())) }
}

struct Splitter<I> {
    input: I,
    ordered: Arc<Ordered>,
    pool: Pool<Job>,
    /// For frames that are too large for the others.
    own: Decoder<'static>,
}

impl<I: BufRead> Splitter<I> {
    fn run(&mut self) {
        let failed = loop {
            match self.frame() {
                Ok(true) => {}
                Ok(false) | Err(Stop::Closed) => break None,
                Err(Stop::Failed(error)) => break Some(error),
            }
        };
        if let Some(error) = failed
            && let Some(number) = self.ordered.begin()
        {
            self.ordered.end(number, Err(error));
        }
        self.ordered.complete();
    }

    /// One frame; `false` at the end of the file.
    fn frame(&mut self) -> Result<bool, Stop> {
        let (mut scan, mut pieces, mut held) = (Scan::default(), Vec::new(), 0);
        while !scan.ended() {
            let arrived = self.input.fill_buf()?;
            if arrived.is_empty() {
                return if scan.begun() {
                    Err(Stop::Failed(io::ErrorKind::UnexpectedEof.into()))
                } else {
                    Ok(false)
                };
            }
            let count = match scan.pass(arrived) {
                Ok(count) if scan.window() <= WINDOW && held + count <= FRAME || scan.skippable() => count,
                // The decoder knows what is wrong with it, if anything is.
                _ => return self.stream(pieces).map(|()| true),
            };
            if !scan.skippable() {
                self.ordered.reserve(count).ok_or(Closed)?;
                pieces.push(arrived[..count].to_vec());
                held += count;
            }
            self.input.consume(count);
        }
        if !scan.skippable() {
            let number = self.ordered.begin().ok_or(Closed)?;
            if !self.pool.give(Job { number, pieces }) {
                return Err(io::Error::other("the decoders stopped").into());
            }
        }
        Ok(true)
    }

    /// A frame of which `pieces` have arrived, decoded here.
    fn stream(&mut self, pieces: Vec<Vec<u8>>) -> Result<(), Stop> {
        let ordered = self.ordered.clone();
        let mut output = Output::new(&ordered, ordered.begin().ok_or(Closed)?);
        let how = self.rest(pieces, &mut output);
        let failed = how.is_err();
        output.end(how);
        // It has said why.
        if failed { Err(Stop::Closed) } else { Ok(()) }
    }

    fn rest(&mut self, pieces: Vec<Vec<u8>>, output: &mut Output<'_>) -> Result<(), Stop> {
        self.own.reinit()?;
        for piece in pieces {
            let (used, ended) = output.unpack(&mut self.own, &piece)?;
            self.ordered.release(piece.len());
            if ended || used < piece.len() {
                return Err(too_short());
            }
        }
        loop {
            let arrived = self.input.fill_buf()?;
            if arrived.is_empty() {
                return Err(Stop::Failed(io::ErrorKind::UnexpectedEof.into()));
            }
            let (used, ended) = output.unpack(&mut self.own, arrived)?;
            self.input.consume(used);
            if ended {
                return Ok(());
            }
        }
    }
}

/// The headers say something else than the decoder.
fn too_short() -> Stop {
    Stop::Failed(io::Error::other("a frame ends before its end"))
}
