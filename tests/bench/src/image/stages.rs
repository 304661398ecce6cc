//! Each stage of writing an image alone, by the libraries that the agent uses: what the floor is made of.

use super::clock::Clock;
use super::disk;
use super::ours::source;
use crate::erase::ours::Took;
use anyhow::{Context, Result, bail};
use block::Target;
use block::aligned::{Aligned, is_zero};
use image_writer::format::{Ahead, Sink, qcow2};
use image_writer::source::{Bytes, Digest, Head, Receiver, SourceError};
use image_writer::unpack::Compression;
use image_writer::{Algorithm, Format, ImageError, LeafSum};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::Path;
use std::process::Command;

const MIB: usize = 1 << 20;
/// Leaves of the digest as written.
const LEAF: usize = 64 << 10;
/// Pieces in which bytes come from the network.
const PIECE: usize = 128 << 10;
/// Zeroes that are written at once at most, in MiB, as the agent does.
const ZEROES: usize = 64;

/// What each took.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Stages {
    /// HTTP, with the server's side of it.
    pub receive: Took,
    /// Digest of the download.
    pub digest: Took,
    /// Decompression, and reading the format, in one thread.
    pub decode: Took,
    /// Digest as written.
    pub sum: Took,
    /// The device, flushed.
    pub write: Took,
    /// Reading it back.
    pub read: Took,
    /// SHA-256 of what was read back.
    pub read_digest: Took,
}

/// The least time in which the stages can be done.
#[derive(Debug, Clone, Copy)]
pub struct Floor {
    /// Received, verified, written and flushed.
    pub written: f64,
    /// In addition: read, and both digests of that.
    pub read_back: f64,
}

impl Stages {
    /// On so many cores, `in_parts` of which the decoding can use.
    pub fn floor(&self, cores: usize, in_parts: bool) -> Floor {
        let cores = u32::try_from(cores).map_or(f64::INFINITY, f64::from);
        let decode = if in_parts { self.decode.seconds / cores } else { self.decode.seconds };
        let least = |alone: &[f64], all: &[Took]| {
            let slowest = alone.iter().copied().fold(0.0, f64::max);
            slowest.max(all.iter().map(|took| took.cpu_s).sum::<f64>() / cores)
        };
        let alone = [self.receive, self.digest, self.sum, self.write].map(|took| took.seconds);
        let written = least(
            &[&alone[..], &[decode]].concat(),
            &[self.receive, self.digest, self.decode, self.sum, self.write],
        );
        let again = [self.read, self.sum, self.read_digest];
        Floor { written, read_back: least(&again.map(|took| took.seconds), &again) }
    }
}

/// What a child needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The file on the server.
    pub url: &'a str,
    /// The same on the disk.
    pub file: &'a Path,
    /// What it unpacks to.
    pub raw: &'a Path,
    /// The device.
    pub device: &'a Path,
    /// The server.
    pub server: u32,
}

/// Measures in a child, so that its memory is gone afterwards.
///
/// # Errors
/// When a stage fails.
pub fn measure(program: &Path, place: Place) -> Result<Stages> {
    let mut command = Command::new(program);
    command.args(["image-stages", place.url]).args([place.file, place.raw, place.device]);
    let output = command.arg(place.server.to_string()).output().context("the bench as its own child")?;
    if !output.status.success() {
        bail!("a stage failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("the result of the child")
}

/// The child: prints the result to standard output.
///
/// # Errors
/// When a stage fails.
pub fn child(place: Place) -> Result<()> {
    let clock = Clock { server: place.server };
    let source = source(place.url)?;
    let receive = clock.measure(|| Ok(image_writer::source::fetch(&source, &mut Nothing)?))?.1;
    let file = std::fs::read(place.file)?;
    let sha256 = |bytes: &[u8]| {
        clock.measure(|| {
            let mut digest = Digest::new(Algorithm::Sha256);
            bytes.chunks(PIECE).for_each(|piece| digest.update(piece));
            Ok(std::hint::black_box(digest.finish()))
        })
    };
    let digest = sha256(&file)?.1;
    let (unpacked, decode) = clock.measure(|| decode(&file))?;
    drop(file);
    let raw = std::fs::read(place.raw)?;
    if unpacked != raw.len() as u64 {
        bail!("{} unpacks to {unpacked} bytes", place.file.display());
    }
    let sum = clock.measure(|| {
        let mut sum = LeafSum::new(LEAF);
        (0..).step_by(MIB).zip(raw.chunks(MIB)).for_each(|(offset, chunk)| sum.add(offset, chunk));
        Ok(std::hint::black_box(sum.hex()))
    })?;
    let zero: Vec<bool> = raw.chunks(MIB).map(is_zero).collect();
    let read_digest = sha256(&raw)?.1;
    drop(raw);
    let device = disk::open(place.device)?;
    let write = clock.measure(|| write(&device, &zero))?.1;
    let read = clock.measure(|| read(&device, zero.len()))?.1;
    let stages = Stages { receive, digest, decode, sum: sum.1, write, read, read_digest };
    println!("{}", serde_json::to_string(&stages)?);
    Ok(())
}

/// Receives and forgets.
struct Nothing;

impl Receiver for Nothing {
    type Error = SourceError;
    fn head(&mut self, _: &Head) -> Result<(), SourceError> {
        Ok(())
    }
    fn bytes(&mut self, bytes: Bytes) -> Result<(), SourceError> {
        std::hint::black_box(bytes);
        Ok(())
    }
    fn note(&mut self, problem: &str) {
        eprintln!("bench: {problem}");
    }
    fn cancelled(&self) -> bool {
        false
    }
}

/// Counts what a format says.
struct Count(u64);

impl Sink for Count {
    fn size(&mut self, _: u64, _: usize) -> Result<(), ImageError> {
        Ok(())
    }
    fn data(&mut self, _: u64, bytes: &[u8]) -> Result<(), ImageError> {
        self.0 += bytes.len() as u64;
        Ok(())
    }
    fn zero(&mut self, _: u64, length: u64) -> Result<(), ImageError> {
        self.0 += length;
        Ok(())
    }
}

/// Reads ahead in the file, as the writer does by requests.
struct Ranges<'a>(&'a [u8]);

impl Ahead for Ranges<'_> {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, ImageError> {
        let bytes = usize::try_from(offset).ok().and_then(|at| self.0.get(at..)?.get(..length));
        Ok(bytes.ok_or_else(|| ImageError::Internal(format!("no {length} bytes at {offset}")))?.to_vec())
    }
}

/// Bytes that `file` unpacks to. A file that is the image itself needs no decoding.
fn decode(file: &[u8]) -> Result<u64> {
    let compression = Compression::of(file);
    let mut count = Count(0);
    if Format::of(file)? == Format::Qcow2 {
        let failed = |error: std::io::Error| ImageError::Internal(error.to_string());
        qcow2::place(&mut &file[..], &mut count, Some(&Ranges(file)), &failed)?;
        return Ok(count.0);
    }
    if compression == Compression::None {
        return Ok(file.len() as u64);
    }
    let mut unpacked = compression.reader(file)?;
    let mut buffer = vec![0; MIB];
    loop {
        match unpacked.read(&mut buffer)? {
            0 => return Ok(count.0),
            length => count.0 += std::hint::black_box(&buffer[..length]).len() as u64,
        }
    }
}

/// Chunks of 1 MiB, of which those that are zero are left to the device.
fn write(device: &dyn Target, zero: &[bool]) -> Result<()> {
    let mut buffer = Aligned::new(MIB);
    buffer.fill(0x5a);
    let mut at = 0;
    while at < zero.len() {
        let offset = (at * MIB) as u64;
        let run = zero[at..].iter().take(ZEROES).take_while(|zero| **zero).count();
        if run > 0 {
            device.zero_out(offset, (run * MIB) as u64)?;
            at += run;
            continue;
        }
        let mut done = 0;
        while done < MIB {
            done += device.write_at(&buffer[done..], offset + done as u64)?;
        }
        at += 1;
    }
    Ok(device.flush()?)
}

fn read(device: &dyn Target, chunks: usize) -> Result<()> {
    let mut buffer = Aligned::new(MIB);
    for at in 0..chunks {
        let mut done = 0;
        while done < MIB {
            match device.read_at(&mut buffer[done..], (at * MIB + done) as u64)? {
                0 => bail!("the device ends"),
                length => done += length,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_slowest_stage_or_the_processors() {
        let took = |seconds, cpu_s| Took { seconds, cpu_s };
        let stages = Stages {
            receive: took(1.0, 1.0),
            digest: took(1.0, 1.0),
            decode: took(8.0, 8.0),
            sum: took(1.0, 1.0),
            write: took(2.0, 1.0),
            read: took(0.5, 0.5),
            read_digest: took(2.0, 2.0),
        };
        let floor = |cores, in_parts| {
            let floor = stages.floor(cores, in_parts);
            (floor.written, floor.read_back)
        };
        assert_eq!(floor(1, false), (12.0, 3.5), "one core does everything");
        assert_eq!(floor(2, false), (8.0, 2.0), "decoding is the slowest");
        assert_eq!(floor(2, true), (6.0, 2.0), "decoding on two cores; now the cores are the limit");
        assert_eq!(floor(8, true), (2.0, 2.0), "the device is the slowest");
    }
}
