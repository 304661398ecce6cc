//! How fast the agent overwrites and reads back, compared with fio (the limit) and with other erase tools.
//!
//! Everything runs on the same loop devices in one run. In each round each runs once, directly after one another, and
//! is held against fio's run of the same round: the machine may be busy with other work, so that only such ratios mean
//! anything. The result is the median of the rounds and their spread.

pub mod disks;
pub mod fio;
pub mod node;
pub mod ours;
pub mod peer;
pub mod report;

use anyhow::Result;
use disks::Disks;
use fio::{SETTINGS, Setting, Way};
use ours::Took;
use peer::PEERS;
use report::{Contest, Memory, Report, Row, Spread};
use std::path::Path;

/// Disks that are erased at once in the contest of many.
const MANY: usize = 8;
/// Size of a disk that is only begun, to see the memory that it takes.
const LARGE: u64 = 1 << 40;
/// Disks of which the memory is seen when they are erased at once: more than a shelf holds. They are [`SMALL`].
const SHELF: usize = 96;
/// Bytes of one of them.
const SMALL: u64 = 16 << 20;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Bytes of the one disk that is erased in a round; each of several has half of that. A multiple of 256 MiB.
    pub size: u64,
    /// Rounds.
    pub rounds: usize,
    /// How often each of fio's settings is tried before the best is chosen.
    pub tries: usize,
    /// Also run other people's tools, in every third round.
    pub peers: bool,
}

/// Measure on loop devices over files below `memory` and `disk`.
/// With `image`, also in a node that boots from it.
///
/// # Errors
/// When devices cannot be made or a tool fails.
pub fn run(memory: &Path, disk: &Path, image: Option<&Path>, shape: Shape) -> Result<Report> {
    let program = std::env::current_exe()?;
    let mut report = Report::begin(shape)?;
    for (backing, dir, count) in [("memory", memory, 1), ("memory", memory, MANY), ("disk", disk, 1)] {
        let size = if count == 1 { shape.size } else { shape.size / 2 };
        let disks = Disks::written(dir, count, size)?;
        // The disk below is slow and the same for all: fewer rounds are enough.
        let rounds = if backing == "disk" { shape.rounds.div_ceil(2) } else { shape.rounds };
        let shape = Shape { rounds, peers: shape.peers && count == 1, ..shape };
        report.contests.push(contest(&program, backing, &disks, shape)?);
    }
    if let Some(image) = image {
        // The processors of a node are emulated: less is measured.
        let shape = Shape { size: shape.size / 4, rounds: shape.rounds.div_ceil(5), ..shape };
        report.contests.extend(node::measure(image, memory, shape)?);
    }
    let sparse = Disks::sparse(memory, 2 * MANY, LARGE)?;
    for count in [1, 2 * MANY] {
        let erased = ours::erase(&program, &sparse.nodes[..count], Some(64 << 20))?;
        report.memory.push(Memory { disks: count, size: LARGE, whole: false, peak_kib: erased.peak_kib });
    }
    drop(sparse);
    let shelf = Disks::sparse(memory, SHELF, SMALL)?;
    let erased = ours::erase(&program, &shelf.nodes, None)?;
    report.memory.push(Memory { disks: SHELF, size: SMALL, whole: true, peak_kib: erased.peak_kib });
    Ok(report)
}

/// Rounds on the same disks.
fn contest(program: &Path, backing: &str, disks: &Disks, shape: Shape) -> Result<Contest> {
    let count = disks.nodes.len();
    println!("{count} × {} MiB in {backing}: fio's best setting", disks.size >> 20);
    let (best_write, best_read) =
        (best(disks, Way::Write, shape.tries)?, best(disks, Way::Read, shape.tries)?);
    println!("  write {}; read {}", best_write.describe(), best_read.describe());
    let total = disks.size * count as u64;
    let mut rows: Vec<Row> = Vec::new();
    let mut peak_kib = 0;
    for round in 0..shape.rounds {
        let fio_write = || best_write.run(Way::Write, &disks.nodes, disks.size);
        let fio_read = || best_read.run(Way::Read, &disks.nodes, disks.size);
        // Held against the mean of the run before and the one after, so that a slow drift of the machine cancels.
        let before = (fio_write()?, fio_read()?);
        let ours = ours::erase(program, &disks.nodes, None)?;
        let after = (fio_write()?, fio_read()?);
        let (write, read) = (mean(before.0, after.0), mean(before.1, after.1));
        peak_kib = peak_kib.max(ours.peak_kib);
        let mut note = |name: &str, took: Took, limit: Took| note(&mut rows, name, total, took, limit);
        note(report::FIO_WRITE, write, write);
        note(report::OVERWRITE, ours.overwrite, write);
        note(report::FIO_READ, read, read);
        note(report::READ_BACK, ours.read_back, read);
        let peers = if shape.peers && round % 3 == 0 { &PEERS[..] } else { &[] };
        for peer in peers {
            let took = peer.run(&disks.nodes[0], disks.size)?;
            note(peer.name, took, write);
        }
        println!(
            "  round {}: overwrite {:.2}, read back {:.2} of fio",
            round + 1,
            write.seconds / ours.overwrite.seconds,
            read.seconds / ours.read_back.seconds
        );
    }
    let (write_setting, read_setting) = (best_write.describe(), best_read.describe());
    let backing = backing.to_owned();
    Ok(Contest { backing, disks: count, size: disks.size, write_setting, read_setting, peak_kib, rows })
}

/// The setting with which fio took the least time, of so many runs each.
fn best(disks: &Disks, way: Way, tries: usize) -> Result<Setting> {
    let mut best = (f64::INFINITY, SETTINGS[0]);
    for _ in 0..tries.max(1) {
        for setting in SETTINGS {
            let took = setting.run(way, &disks.nodes, disks.size)?;
            if took.seconds < best.0 {
                best = (took.seconds, setting);
            }
        }
    }
    Ok(best.1)
}

fn mean(a: Took, b: Took) -> Took {
    Took { seconds: f64::midpoint(a.seconds, b.seconds), cpu_s: f64::midpoint(a.cpu_s, b.cpu_s) }
}

fn note(rows: &mut Vec<Row>, name: &str, bytes: u64, took: Took, limit: Took) {
    let at = rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
        rows.push(Row {
            name: name.to_owned(),
            rate: Spread::default(),
            of_fio: Spread::default(),
            cpu: Spread::default(),
        });
        rows.len() - 1
    });
    let gib = gib(bytes);
    rows[at].rate.add(gib / took.seconds);
    rows[at].of_fio.add(limit.seconds / took.seconds);
    rows[at].cpu.add(took.cpu_s / gib);
}

fn gib(bytes: u64) -> f64 {
    // Whole MiB are exact in 32 bits up to 4 PiB.
    f64::from(u32::try_from(bytes >> 20).unwrap_or(u32::MAX)) / 1024.0
}
