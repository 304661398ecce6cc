//! The stages that overlap: receive, digest of the download, unpack, write, digest as written.

use super::assemble::{Assembler, Part};
use super::drain::Drain;
use super::input::{Arrived, Input, send};
use super::progress::{Meter, Watch};
use super::request::Request;
use super::shared::{Shared, Streamed};
use crate::checkpoint::Identity;
use crate::digest::LeafSum;
use crate::error::ImageError;
use crate::format::{Ahead, Format, qcow2, read_full};
use crate::hold::Held;
use crate::pool::decoders;
use crate::unpack::Compression;
use block::Target;
use hyper::body::Bytes;
use image_source::Checksum;
use image_source::{Digest, Head, Ranges, Receiver as Receives, fetch};
use std::convert::Infallible;
use std::io::{BufRead, Read};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

/// Pieces of the download that wait for a stage at most; each has some 100 KB.
const PIECES: usize = 8;
/// Parts of the content that wait at most: as many as there are buffers.
const PARTS: usize = 5;
/// Leaves of an image that is not written in order.
const LEAF: usize = 64 * 1024;
/// Between two looks at how far the stages are.
const TICK: Duration = Duration::from_millis(100);

/// Gives what arrives to the decoder and to the digest.
struct Receive<'a> {
    shared: &'a Shared,
    decoder: SyncSender<Arrived>,
    digest: SyncSender<Bytes>,
}

impl Receives for Receive<'_> {
    type Error = ImageError;

    fn head(&mut self, head: &Head) -> Result<(), ImageError> {
        *self.shared.length.lock().unwrap_or_else(PoisonError::into_inner) = head.length;
        self.sent(send(&self.decoder, Arrived::Head(head.clone())))
    }

    fn bytes(&mut self, bytes: Bytes) -> Result<(), ImageError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.shared.received.fetch_add(bytes.len() as u64, Ordering::AcqRel);
        let both = send(&self.digest, bytes.clone()) && send(&self.decoder, Arrived::Bytes(bytes));
        self.sent(both)
    }

    fn note(&mut self, problem: &str) {
        self.shared.notes.lock().unwrap_or_else(PoisonError::into_inner).push(problem.to_owned());
    }

    fn cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Acquire)
    }
}

impl Receive<'_> {
    fn sent(&self, sent: bool) -> Result<(), ImageError> {
        if sent { Ok(()) } else { Err(ImageError::Internal("a stage ended".to_owned())) }
    }
}

/// Streams the image to the disk, all but the held parts.
pub(super) fn stream(
    request: &Request,
    checksum: &Checksum,
    disk: &dyn Target,
    held: Held,
    watch: &dyn Watch,
) -> Result<Streamed, ImageError> {
    let shared = Shared::default();
    let (to_decoder, arrived) = sync_channel(PIECES);
    let (to_digest, pieces) = sync_channel(PIECES);
    let (to_disk, parts) = sync_channel(PARTS);
    let (to_sum, parts_to_sum) = sync_channel(PARTS);
    // Every stage has a sender, which goes when it ends.
    let (running, all_ended) = channel::<Infallible>();
    std::thread::scope(|scope| {
        let shared = &shared;
        let [one, two, three, four] = [running.clone(), running.clone(), running.clone(), running.clone()];
        let receiver = scope.spawn(move || with(one, || receive(request, shared, to_decoder, to_digest)));
        let digest = scope.spawn(move || with(two, || digest(checksum, &pieces)));
        let decoder = scope.spawn(move || {
            let disk = (disk.name(), disk.size());
            let cancelled = || shared.cancelled.load(Ordering::Acquire);
            with(three, || {
                decode(request, checksum, disk, Input::new(arrived), [to_disk, to_sum], &cancelled)
            })
        });
        let writer = scope.spawn(move || with(four, || Drain::new(disk, held, shared, request).run(parts)));
        let sum = scope.spawn(move || with(running, || sum(&parts_to_sum)));
        let mut meter = Meter::default();
        // The rate counts from here.
        shared.report(watch, &mut meter);
        while let Err(RecvTimeoutError::Timeout) = all_ended.recv_timeout(TICK) {
            shared.report(watch, &mut meter);
        }
        shared.report(watch, &mut meter);
        // The stage that failed first is the one that comes last in the row; the others ended because of it.
        let (written, decoded, received) = (join(writer), join(decoder), join(receiver));
        let (digest, sum) = (join(digest)?, join(sum)?);
        let drained = written??;
        let (format, compression, size) = decoded??;
        received??;
        Ok(Streamed {
            digest,
            downloaded: shared.received.load(Ordering::Acquire),
            format,
            compression,
            size,
            written: drained.1,
            held: drained.0,
            sum,
        })
    })
}

/// What `stage` makes, while `_running` is there.
fn with<T>(_running: Sender<Infallible>, stage: impl FnOnce() -> T) -> T {
    stage()
}

fn join<T>(stage: ScopedJoinHandle<'_, T>) -> Result<T, ImageError> {
    stage.join().map_err(|_| ImageError::Internal("a stage panicked".to_owned()))
}

fn receive(
    request: &Request,
    shared: &Shared,
    decoder: SyncSender<Arrived>,
    digest: SyncSender<Bytes>,
) -> Result<(), ImageError> {
    let failures = decoder.clone();
    let mut receive = Receive { shared, decoder, digest };
    match fetch(&request.source, &mut receive) {
        Ok(()) => Ok(()),
        Err(error) => {
            let text = error.to_string();
            // The decoder fails with it, unless it has failed already.
            send(&failures, Arrived::Failed(error));
            Err(ImageError::Internal(text))
        }
    }
}

fn digest(checksum: &Checksum, pieces: &Receiver<Bytes>) -> String {
    let mut digest = Digest::new(checksum.algorithm);
    pieces.iter().for_each(|piece| digest.update(&piece));
    digest.finish()
}

/// The digest of the content as it is given to the disk.
fn sum(parts: &Receiver<Part>) -> LeafSum {
    let mut sum = LeafSum::new(LEAF);
    for part in parts {
        match part {
            Part::Begin(begin) => sum = LeafSum::new(begin.leaf.min(LEAF)),
            Part::Data(offset, chunk) => sum.add(offset, &chunk),
            Part::Zero(..) => {}
        }
    }
    sum
}

/// Unpacks the file and gives its content to the stages behind.
fn decode(
    request: &Request,
    checksum: &Checksum,
    disk: (String, u64),
    mut input: Input,
    to: [SyncSender<Part>; 2],
    cancelled: &dyn Fn() -> bool,
) -> Result<(Format, Compression, u64), ImageError> {
    let head = input.head()?;
    let first = input.fill_buf().map_err(|error| ImageError::from_io(error, internal))?;
    let compression = Compression::of(first);
    let too_large =
        |bytes: u64| ImageError::TooLarge { image: Some(bytes), disk: disk.0.clone(), size: disk.1 };
    let known_size = compression.content_size(first);
    let failed = |error| compression.error(error);
    let mut unpacked = compression.reader_with(decoders(), input)?;
    let mut start = vec![0; qcow2::Header::LENGTH];
    let count = read_full(&mut unpacked, &mut start).map_err(failed)?;
    let format = expected(request.format, Format::of(&start[..count])?)?;
    let size = if compression == Compression::None { head.length } else { known_size };
    if let Some(bytes) = size.filter(|&bytes| format == Format::Raw && bytes > disk.1) {
        return Err(too_large(bytes));
    }
    // Within a compressed file there are no ranges.
    let ranges = if compression == Compression::None && format == Format::Qcow2 {
        Ranges::new(&request.source, &head, cancelled)?
    } else {
        None
    };
    let image = Identity {
        url: request.source.url.masked(),
        checksum: checksum.value.clone(),
        etag: head.etag,
        modified: head.modified,
        length: head.length,
        format,
        ranges: ranges.is_some(),
    };
    let left = request.checkpoint.as_ref();
    let done = left.map_or(0, |checkpoint| checkpoint.written(&image, request.disk.as_ref(), disk.1));
    let mut assembler = Assembler::new(disk, to, image, done);
    let mut content = start[..count].chain(unpacked);
    match format {
        Format::Raw => assembler.read_all(&mut content, &failed)?,
        Format::Qcow2 => {
            let ahead = ranges.as_ref().map(|ranges| ranges as &dyn Ahead);
            qcow2::place_with(decoders(), &mut content, &mut assembler, ahead, &failed)?;
        }
    }
    Ok((format, compression, assembler.finish()?))
}

/// The format that was found, unless another one was promised.
fn expected(said: Option<Format>, found: Format) -> Result<Format, ImageError> {
    match said {
        Some(said) if said != found => {
            let (said, found) = (said.as_str(), found.as_str());
            Err(ImageError::Format(format!("it is {found}, and was said to be {said}")))
        }
        _ => Ok(found),
    }
}

fn internal(error: std::io::Error) -> ImageError {
    ImageError::Internal(error.to_string())
}
