//! The table of a run, and its JSON.

use super::Shape;
use super::load::Load;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fmt;
use std::io::Write;
use std::path::Path;

/// Everything that was measured in one run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// When, RFC 3339.
    pub at: String,
    /// Processors of this machine.
    pub processors: usize,
    /// Its load in the minute before.
    pub load_before: String,
    /// Nodes of the large and of the small database; of the large one, those with an agent.
    pub nodes: [usize; 3],
    /// Seconds of each load.
    pub span_s: f64,
    /// What a program reaches that does nothing else.
    pub notes: Vec<Note>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A limit that belongs to several rows.
#[derive(Debug, Serialize)]
pub struct Note {
    /// What it is.
    pub text: String,
    /// What the clients saw.
    pub load: Load,
}

/// What is to be reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Goal {
    /// A time or a size.
    Below(f64),
    /// A rate.
    AtLeast(f64),
    /// None.
    Nothing,
}

impl Goal {
    fn is_missed(self, value: f64) -> bool {
        match self {
            Self::Below(goal) => value >= goal,
            Self::AtLeast(goal) => value < goal,
            Self::Nothing => false,
        }
    }
}

/// A figure.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// The figure that the goal is about.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// The goal.
    pub goal: Goal,
    /// The limit, and whatever else helps to judge the figure.
    pub limit: String,
    /// What the clients saw.
    pub load: Option<Load>,
}

impl Row {
    fn of(name: &str, value: f64, unit: &'static str, goal: Goal, load: Option<&Load>) -> Self {
        Self { name: name.to_owned(), value, unit, goal, limit: String::new(), load: load.cloned() }
    }

    /// Memory in MiB.
    pub fn memory(name: &str, mib: f64, goal: f64) -> Self {
        Self::of(name, mib, "MiB", Goal::Below(goal), None)
    }

    /// A time in milliseconds.
    pub fn time(name: &str, ms: f64, goal: Goal) -> Self {
        Self::of(name, ms, "ms", goal, None)
    }

    /// The time that 99 of 100 answers did not exceed.
    pub fn p99(name: &str, load: &Load, goal: f64) -> Self {
        Self::of(name, load.p99_ms, "ms p99", Goal::Below(goal), Some(load))
    }

    /// The time that half of the answers did not exceed.
    pub fn p50(name: &str, load: &Load, goal: f64) -> Self {
        Self::of(name, load.p50_ms, "ms p50", Goal::Below(goal), Some(load))
    }

    /// Requests a second; a goal of 0 is none.
    pub fn rate(name: &str, load: &Load, goal: f64) -> Self {
        let goal = if goal > 0.0 { Goal::AtLeast(goal) } else { Goal::Nothing };
        Self::of(name, load.per_s, "/s", goal, Some(load))
    }

    /// How many times as many requests as a peer answers; the load is ours.
    pub fn factor(name: &str, value: f64, load: &Load) -> Self {
        Self::of(name, value, "times", Goal::Nothing, Some(load))
    }

    /// With its limit.
    pub fn limit(mut self, text: String) -> Self {
        self.limit = text;
        self
    }
}

impl Report {
    /// A report of now.
    pub fn begin(shape: &Shape) -> Result<Self> {
        let at = time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339)?;
        let processors = std::thread::available_parallelism()?.get();
        let load = std::fs::read_to_string("/proc/loadavg")?;
        let load_before = load.split(' ').next().unwrap_or_default().to_owned();
        let nodes = [shape.nodes, shape.few, shape.agents];
        let span_s = shape.span.as_secs_f64();
        Ok(Self { at, processors, load_before, nodes, span_s, notes: Vec::new(), rows: Vec::new() })
    }

    /// Add a limit.
    pub fn note(&mut self, text: String, load: &Load) {
        self.notes.push(Note { text, load: load.clone() });
    }

    /// Which goals are missed.
    pub fn missed(&self) -> Vec<String> {
        let missed = self.rows.iter().filter(|row| row.goal.is_missed(row.value));
        missed.map(|row| format!("{}: {:.2} {}", row.name, row.value, row.unit)).collect()
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
        let [nodes, few, agents] = self.nodes;
        writeln!(
            f,
            "{nodes} nodes ({few} where few are named), {agents} with an agent; {} processors, load {} before",
            self.processors, self.load_before
        )?;
        for Note { text, load } in &self.notes {
            writeln!(
                f,
                "{text} (processor: server {:.0} µs, client {:.0} µs each)",
                load.server_us, load.client_us
            )?;
        }
        for row in &self.rows {
            let goal = match row.goal {
                Goal::Below(goal) => format!("< {goal:.2}"),
                Goal::AtLeast(goal) => format!("≥ {goal:.0}"),
                Goal::Nothing => String::new(),
            };
            write!(f, "{:<44} {:>10.2} {:<7} {goal:<9}", row.name, row.value, row.unit)?;
            if let Some(load) = &row.load {
                write!(
                    f,
                    " {:>7.0}/s p50 {:>6.2} p99 {:>6.2} max {:>7.2} ms; server {:>4.0} client {:>3.0} µs",
                    load.per_s, load.p50_ms, load.p99_ms, load.max_ms, load.server_us, load.client_us
                )?;
            }
            writeln!(f, "  {}", row.limit)?;
        }
        Ok(())
    }
}
