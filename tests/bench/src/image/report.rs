//! The report of `bench image`: JSON for machines, Markdown for people.

use super::Shape;
use super::content::Kind;
use super::ours::Written;
use super::peer::Wrote;
use super::stages::{Floor, Stages};
use crate::erase::report::Spread;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fmt;
use std::io::Write;
use std::path::Path;

/// What issue 17 wants: at most so many times the floor.
pub const FLOOR_GOAL: f64 = 1.25;
/// … at least so many times as fast as ironic-python-agent.
pub const PEER_GOAL: f64 = 2.0;
/// … and less memory than this in addition to the decoder's window, in KiB.
pub const MEMORY_GOAL_KIB: u64 = 32 << 10;

/// Everything that was measured in one run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// When, RFC 3339.
    pub at: String,
    /// Processors of this machine.
    pub processors: usize,
    /// Its kernel.
    pub kernel: String,
    /// Load of one minute when it began: other work that was going on.
    pub load: f64,
    /// Bytes of the image.
    pub size: u64,
    /// What it was made of.
    pub seed: u64,
    /// Whether ironic-python-agent took part.
    pub peer: bool,
    /// One for each file.
    pub rows: Vec<Row>,
}

/// What one round said of one file.
#[derive(Debug, Clone)]
pub struct Round {
    /// The file.
    pub kind: Kind,
    /// Each stage alone.
    pub stages: Stages,
    /// Our writer.
    pub written: Written,
    /// Processor time of all that took part in it.
    pub cpu_s: f64,
    /// ironic-python-agent, where it can write such a file.
    pub peer: Option<Wrote>,
}

/// One file.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub length: u64,
    #[serde(skip)]
    kind: Kind,
    /// The most memory in addition to the decoder's window, in KiB.
    pub memory_kib: u64,
    /// Bytes of the scratch file of ironic-python-agent.
    pub scratch: u64,
    /// The stages of each round.
    pub stages: Vec<Stages>,
    /// Our writer in each round.
    pub written: Vec<Written>,
    /// Processor seconds of our writer, with the server and the kernel's workers, in each round.
    pub cpu_s: Vec<f64>,
    /// Seconds of ironic-python-agent in each round.
    pub peer_s: Vec<f64>,
}

impl Round {
    /// The floor of this round.
    fn floor(&self, cores: usize) -> Floor {
        self.stages.floor(cores, self.kind.in_parts)
    }

    /// A line of it.
    pub fn describe(&self, cores: usize) -> String {
        let (floor, ours) = (self.floor(cores), &self.written);
        let Stages { receive, digest, decode, sum, write, read, read_digest } = self.stages;
        let peer = self.peer.map(|peer| format!(", ironic-python-agent {:.2} s", peer.seconds));
        format!(
            "{}: {:.2} s of {:.2}, read back {:.2} of {:.2}, {:.2} CPU s, {} KiB{} (alone, CPU: receive {receive}, digest \
             {digest}, decode {decode}, digest as written {sum}, write {write}, read {read}, digest {read_digest})",
            self.kind.name,
            ours.written_s,
            floor.written,
            ours.done_s,
            floor.written + floor.read_back,
            self.cpu_s,
            ours.peak_kib,
            peer.unwrap_or_default()
        )
    }
}

impl Row {
    /// Of the first round.
    pub fn new(kind: Kind, length: u64, round: Round) -> Self {
        let mut row = Row {
            name: kind.name.to_owned(),
            length,
            kind,
            memory_kib: 0,
            scratch: 0,
            stages: Vec::new(),
            written: Vec::new(),
            cpu_s: Vec::new(),
            peer_s: Vec::new(),
        };
        row.add(round);
        row
    }

    /// One more.
    pub fn add(&mut self, round: Round) {
        let without_window = round.written.peak_kib.saturating_sub(self.kind.window_kib);
        self.memory_kib = self.memory_kib.max(without_window);
        self.stages.push(round.stages);
        self.written.push(round.written);
        self.cpu_s.push(round.cpu_s);
        if let Some(peer) = round.peer {
            self.peer_s.push(peer.seconds);
            self.scratch = self.scratch.max(peer.scratch);
        }
    }

    fn each(&self, cores: usize, value: impl Fn(Floor, &Written) -> f64) -> Spread {
        let mut spread = Spread::default();
        for (stages, written) in self.stages.iter().zip(&self.written) {
            spread.add(value(stages.floor(cores, self.kind.in_parts), written));
        }
        spread
    }

    fn peer(&self, of: impl Fn(&Written) -> f64) -> Option<Spread> {
        let mut spread = Spread::default();
        self.peer_s.iter().zip(&self.written).for_each(|(peer, written)| spread.add(peer / of(written)));
        (spread.count() > 0).then_some(spread)
    }
}

/// One number that issue 17 has a goal for.
struct Held {
    file: String,
    what: &'static str,
    spread: Spread,
    /// The other end of what is good.
    goal: f64,
    at_least: bool,
}

impl Held {
    fn met(&self) -> bool {
        let value = self.spread.median();
        if self.at_least { value >= self.goal } else { value <= self.goal }
    }
}

impl Report {
    /// An empty one of now.
    ///
    /// # Errors
    /// When the machine's processor cannot be read.
    pub fn begin(shape: Shape, peer: bool) -> Result<Self> {
        let load = std::fs::read_to_string("/proc/loadavg")?;
        Ok(Self {
            at: time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339)?,
            processors: std::thread::available_parallelism()?.get(),
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            load: load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            size: shape.size,
            seed: shape.seed,
            peer,
            rows: Vec::new(),
        })
    }

    fn held(&self) -> Vec<Held> {
        let mut all = Vec::new();
        for row in &self.rows {
            let mut hold = |what, spread, goal, at_least| {
                all.push(Held { file: row.name.clone(), what, spread, goal, at_least });
            };
            let written = row.each(self.processors, |floor, ours| ours.written_s / floor.written);
            hold("written, of the floor", written, FLOOR_GOAL, false);
            let done =
                row.each(self.processors, |floor, ours| ours.done_s / (floor.written + floor.read_back));
            hold("and read back, of the floor", done, FLOOR_GOAL, false);
            let mut memory = Spread::default();
            memory.add(f64::from(u32::try_from(row.memory_kib).unwrap_or(u32::MAX)) / 1024.0);
            hold("MiB of memory without the window", memory, f64::from(32u8), false);
            if let Some(spread) = row.peer(|ours| ours.written_s) {
                hold("ironic-python-agent, of ours written", spread, PEER_GOAL, true);
            }
            if let Some(spread) = row.peer(|ours| ours.done_s) {
                hold("ironic-python-agent, of ours read back", spread, PEER_GOAL, true);
            }
        }
        all
    }

    /// Which goals of issue 17 are not reached.
    pub fn missed(&self) -> Vec<String> {
        let missed = self.held().into_iter().filter(|held| !held.met());
        missed
            .map(|held| {
                let Held { file, what, spread, goal, .. } = held;
                format!("{file}: {what} {:.2}, wanted {goal:.2}", spread.median())
            })
            .collect()
    }

    /// Writes it as JSON.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut file = std::fs::File::create(path).with_context(|| format!("{}", path.display()))?;
        serde_json::to_writer_pretty(&mut file, self)?;
        Ok(writeln!(file)?)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { at, kernel, processors, load, size, seed, .. } = self;
        let size = size >> 20;
        writeln!(f, "{at}, Linux {kernel}, {processors} processors, load {load}; {size} MiB, seed {seed}\n")?;
        writeln!(f, "| image | | goal | median (10 %, 90 %) | met | rounds |\n|---|---|---|---|---|---|")?;
        for held in self.held() {
            let Held { file, what, spread, goal, at_least } = &held;
            let (goal, met) = (format!("{} {goal}", if *at_least { "≥" } else { "≤" }), held.met());
            let (low, high) = (spread.percentile(10), spread.percentile(90));
            writeln!(
                f,
                "| {file} | {what} | {goal} | {:.2} ({low:.2}, {high:.2}) | {} | {} |",
                spread.median(),
                if met { "yes" } else { "**no**" },
                spread.count()
            )?;
        }
        writeln!(
            f,
            "\n| image | MiB of the file | floor, s | written, s | read back, s | CPU s | peer, s | its scratch, MiB |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|")?;
        for row in &self.rows {
            let median = |values: &[f64]| {
                let mut spread = Spread::default();
                values.iter().for_each(|&value| spread.add(value));
                spread.median()
            };
            let peer =
                if row.peer_s.is_empty() { String::new() } else { format!("{:.2}", median(&row.peer_s)) };
            writeln!(
                f,
                "| {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {peer} | {} |",
                row.name,
                row.length >> 20,
                row.each(self.processors, |floor, _| floor.written).median(),
                row.each(self.processors, |_, ours| ours.written_s).median(),
                row.each(self.processors, |_, ours| ours.done_s).median(),
                median(&row.cpu_s),
                row.scratch >> 20
            )?;
        }
        Ok(())
    }
}
