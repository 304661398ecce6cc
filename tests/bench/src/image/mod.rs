//! How fast the agent writes an image to a disk, compared with what its stages take alone and with ironic-python-agent.
//!
//! ```text
//!   content.rs: seed ──▶ raw ──▶ gz, xz, zst, qcow2 ──▶ server.rs, a process ── HTTP ──▶ ours.rs, a process ──▶ loop device
//!                                                                          └──────────▶ stages.rs, peer.rs ──▶ the same
//! ```
//!
//! In each round each file is written once by each, directly after one another, on the same device, and held against the
//! stages of the same round: the machine may be busy with other work, so that only such ratios mean anything.

pub mod clock;
pub mod content;
pub mod disk;
pub mod ours;
pub mod peer;
pub mod report;
pub mod server;
pub mod stages;

use crate::erase::disks::Disks;
use anyhow::{Context, Result, ensure};
use clock::Clock;
use content::{Images, KINDS, Kind};
use image_writer::Algorithm;
use image_writer::source::Digest;
use peer::Peer;
use report::{Report, Row};
use server::Server;
use stages::Place;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes of the disk behind the image.
const BEHIND: u64 = 4 << 20;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Bytes of the image, a multiple of 1 MiB.
    pub size: u64,
    /// What the image is made of.
    pub seed: u64,
    /// Rounds.
    pub rounds: usize,
}

/// Measure on a loop device over a file below `memory`, with `program`, which is this one, as child. With `peers`, where
/// it is installed, also ironic-python-agent.
///
/// # Errors
/// When a device cannot be made, an image is not written, or is not on the disk afterwards.
pub fn run(program: &Path, memory: &Path, peers: Option<&Path>, shape: Shape) -> Result<Report> {
    let peer = peers.map(|peers| Peer::install(peers, memory)).transpose()?;
    println!("an image of {} MiB, seed {}", shape.size >> 20, shape.seed);
    let images = Images::make(memory, shape.size, shape.seed)?;
    let disks = Disks::written(memory, 1, shape.size + BEHIND)?;
    let server = Server::start(program, images.dir())?;
    let bench = Bench { program, images, device: disks.nodes[0].clone(), server, peer };
    let mut report = Report::begin(shape, bench.peer.is_some())?;
    for round in 0..shape.rounds {
        for (at, kind) in KINDS.into_iter().enumerate() {
            let one = bench.one(kind, round == 0).with_context(|| kind.name)?;
            println!("  round {}: {}", round + 1, one.describe(report.processors));
            match report.rows.get_mut(at) {
                Some(row) => row.add(one),
                None => report.rows.push(Row::new(kind, bench.length(kind)?, one)),
            }
        }
    }
    Ok(report)
}

struct Bench<'a> {
    program: &'a Path,
    images: Images,
    device: PathBuf,
    server: Server,
    peer: Option<Peer>,
}

impl Bench<'_> {
    /// One file, once by each.
    fn one(&self, kind: Kind, compare: bool) -> Result<report::Round> {
        let (file, raw) = (self.images.path(kind.file), self.images.path("raw"));
        let url = format!("http://{}/{}", self.server.address, kind.file);
        let (device, server) = (self.device.as_path(), self.server.id());
        let place = Place { url: &url, file: &file, raw: &raw, device, server };
        let stages = stages::measure(self.program, place)?;
        let (expected, content) = (sha256(&file)?, sha256(&raw)?);
        let clock = Clock { server };
        let (written, took) = clock.measure(|| ours::write(self.program, &url, &expected, device))?;
        ensure!(written.sha256 == content, "the disk returned something else than the image");
        if compare {
            self.compare("our writer")?;
        }
        let peer = match (&self.peer, kind.peer) {
            (Some(peer), Some(_)) => Some(peer.write(kind, &url, &expected, device)?),
            _ => None,
        };
        if compare && peer.is_some() {
            self.compare("ironic-python-agent")?;
        }
        Ok(report::Round { kind, stages, written, cpu_s: took.cpu_s, peer })
    }

    /// What is on the device, as anyone reads it, is the image.
    fn compare(&self, who: &str) -> Result<()> {
        let open = |path: &Path| File::open(path).map(|file| BufReader::with_capacity(1 << 20, file));
        let (mut device, mut raw) =
            (open(&self.device)?.take(self.images.size), open(&self.images.path("raw"))?);
        let (mut there, mut meant) = (vec![0; 1 << 20], vec![0; 1 << 20]);
        for at in 0..self.images.size >> 20 {
            device.read_exact(&mut there)?;
            raw.read_exact(&mut meant)?;
            ensure!(there == meant, "{who} did not write MiB {at} of the image");
        }
        Ok(())
    }

    fn length(&self, kind: Kind) -> Result<u64> {
        Ok(std::fs::metadata(self.images.path(kind.file))?.len())
    }
}

fn sha256(path: &Path) -> Result<String> {
    let (mut file, mut buffer) = (File::open(path)?, vec![0; 1 << 20]);
    let mut digest = Digest::new(Algorithm::Sha256);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(digest.finish()),
            length => digest.update(&buffer[..length]),
        }
    }
}
