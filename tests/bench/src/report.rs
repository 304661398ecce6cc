//! The report: a JSON file for machines, a table for people.

use crate::round::Round;
use anyhow::{Context, Result};
use room::Kind;
use serde::Serialize;
use std::fmt;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// What is to be reached with one kind of agent.
struct Goals {
    /// Median that the controller may add between two steps, in milliseconds.
    gap_ms: f64,
    /// Seconds in which a hundred agents are to have run three steps each.
    fleet_s: f64,
}

/// Issue 3.
const ANNEAL: Goals = Goals { gap_ms: 50.0, fleet_s: 1.0 };
/// Issue 18. The controller asks 50 ms after the agent got its step.
const IPA: Goals = Goals { gap_ms: 100.0, fleet_s: 2.0 };

/// Everything that was measured in one run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// When, RFC 3339.
    pub at: String,
    /// Processors of this machine.
    pub processors: usize,
    /// Median time that its disk takes to make 8 KiB durable: a controller cannot store faster.
    pub disk_sync_ms: f64,
    /// The agents serve TLS.
    pub tls: bool,
    /// The agents are ironic-python-agents.
    pub ironic_python_agent: bool,
    /// One controller each.
    pub sides: Vec<Side>,
}

/// One controller.
#[derive(Debug, Serialize)]
pub struct Side {
    /// Name and version.
    pub controller: String,
    /// One node with many steps.
    pub sequence: Round,
    /// Many nodes with few steps.
    pub fleet: Round,
}

impl Report {
    /// A report of now, of databases below `dir` and agents of this kind.
    ///
    /// # Errors
    /// When the disk cannot be written.
    pub fn begin(dir: &Path, tls: bool, kind: Kind) -> Result<Self> {
        let at = time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339)?;
        let processors = std::thread::available_parallelism()?.get();
        let (disk_sync_ms, ironic_python_agent) = (disk_sync(dir)?, kind == Kind::Ipa);
        Ok(Self { at, processors, disk_sync_ms, tls, ironic_python_agent, sides: Vec::new() })
    }

    /// Which goals the first side misses.
    pub fn missed(&self) -> Vec<String> {
        let Some(ours) = self.sides.first() else { return Vec::new() };
        let Goals { gap_ms, fleet_s } = if self.ironic_python_agent { IPA } else { ANNEAL };
        let mut missed = Vec::new();
        if ours.sequence.gap.median_ms >= gap_ms {
            missed.push(format!("the median between two steps is not under {gap_ms} ms"));
        }
        if ours.fleet.available_s >= fleet_s {
            missed.push(format!("{} agents were not done within {fleet_s} s", ours.fleet.agents));
        }
        missed
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
        writeln!(
            f,
            "{} processors, disk sync {:.1} ms, {} with {}",
            self.processors,
            self.disk_sync_ms,
            if self.ironic_python_agent { "ironic-python-agents" } else { "agents" },
            if self.tls { "TLS" } else { "plain HTTP" }
        )?;
        writeln!(
            f,
            "{:<16} {:>13} {:>30} {:>10} {:>10} {:>10} {:>16}",
            "controller",
            "agents×steps",
            "gap ms (median, p95, max)",
            "last step",
            "available",
            "its CPU",
            "heartbeats"
        )?;
        for side in &self.sides {
            for round in [&side.sequence, &side.fleet] {
                writeln!(f, "{:<16} {round}", side.controller)?;
            }
        }
        if let [ours, peer] = self.sides.as_slice() {
            let gap = peer.sequence.gap.median_ms / ours.sequence.gap.median_ms;
            let fleet = peer.fleet.available_s / ours.fleet.available_s;
            writeln!(
                f,
                "{} takes {gap:.0} times as long between two steps, and {fleet:.0} times as long with {} agents",
                peer.controller, ours.fleet.agents
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = format!("{}×{}", self.agents, self.steps);
        let gap = format!("{:.1}, {:.1}, {:.1}", self.gap.median_ms, self.gap.p95_ms, self.gap.max_ms);
        let beats = format!("{} ({:.0}/s)", self.heartbeats, self.heartbeats_per_s);
        write!(
            f,
            "{shape:>13} {gap:>30} {:>8.2} s {:>8.2} s {:>8.2} s {beats:>16}",
            self.last_step_s, self.available_s, self.controller_cpu_s
        )
    }
}

/// Median of fifty times 8 KiB written to a file below `dir` and made durable, in milliseconds.
fn disk_sync(dir: &Path) -> Result<f64> {
    let path = dir.join("sync");
    let file = std::fs::File::create(&path)?;
    let mut times = Vec::new();
    for block in 0..50 {
        let begun = Instant::now();
        file.write_all_at(&[0x5a; 8192], block * 8192)?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    std::fs::remove_file(&path)?;
    times.sort_unstable();
    Ok(times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64) * 1000.0)
}
