//! The report of `bench erase`: JSON for machines, Markdown for people.

use super::Shape;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::Write;
use std::path::Path;

/// Row of fio's writes.
pub const FIO_WRITE: &str = "fio, write";
/// Row of our overwrite.
pub const OVERWRITE: &str = "anneal, overwrite";
/// Row of fio's reads.
pub const FIO_READ: &str = "fio, read";
/// Row of our read-back.
pub const READ_BACK: &str = "anneal, read back and compare";

/// What issue 6 wants: share of fio's rate when overwriting.
pub const OVERWRITE_GOAL: f64 = 0.95;
/// … and when reading back with comparison.
pub const READ_BACK_GOAL: f64 = 0.90;
/// … and processor seconds for each GiB overwritten.
pub const CPU_GOAL: f64 = 0.10;
/// … and the most memory, in KiB.
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
    /// Bytes of a round.
    pub bytes: u64,
    /// One for each set of disks.
    pub contests: Vec<Contest>,
    /// Erases of which only the memory is measured: of large disks, cancelled soon, and of very many, to the end.
    pub memory: Vec<Memory>,
}

/// Rounds on one set of disks.
#[derive(Debug, Serialize, Deserialize)]
pub struct Contest {
    /// What the disks lie on.
    pub backing: String,
    /// How many disks at once.
    pub disks: usize,
    /// Bytes of each.
    pub size: u64,
    /// fio's best setting for writes.
    pub write_setting: String,
    /// fio's best setting for reads.
    pub read_setting: String,
    /// The most memory that our process had, in KiB.
    pub peak_kib: u64,
    /// One for each tool.
    pub rows: Vec<Row>,
}

/// One tool.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// GiB of the disks per second, whatever the number of passes.
    pub rate: Spread,
    /// The same as a share of fio's in the same round.
    pub of_fio: Spread,
    /// Processor seconds per GiB, the kernel's threads not included.
    pub cpu: Spread,
}

/// The memory of one erase.
#[derive(Debug, Serialize)]
pub struct Memory {
    /// Disks at once.
    pub disks: usize,
    /// Bytes of each.
    pub size: u64,
    /// Whether they were erased and read back to the end, and not cancelled soon.
    pub whole: bool,
    /// The most memory, in KiB.
    pub peak_kib: u64,
}

/// Values of the rounds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Spread {
    values: Vec<f64>,
}

impl Spread {
    /// One more.
    pub fn add(&mut self, value: f64) {
        self.values.push(value);
        self.values.sort_by(f64::total_cmp);
    }

    /// Rounds.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The smallest value that `percent` of all do not exceed (nearest rank); 0 when there is none.
    pub fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.values.len() * percent).div_ceil(100).max(1);
        self.values.get(rank - 1).copied().unwrap_or(0.0)
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.percentile(50)
    }
}

impl Report {
    /// An empty one of now.
    ///
    /// # Errors
    /// When the machine's processor or memory cannot be read.
    pub fn begin(shape: Shape) -> Result<Self> {
        let load = std::fs::read_to_string("/proc/loadavg")?;
        Ok(Self {
            at: time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339)?,
            processors: std::thread::available_parallelism()?.get(),
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            load: load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            bytes: shape.size,
            contests: Vec::new(),
            memory: Vec::new(),
        })
    }

    /// Which goals of issue 6 are not reached.
    pub fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        for contest in &self.contests {
            let place = contest.place();
            let mut hold = |name: &str, what: &str, value: fn(&Row) -> f64, goal: f64, at_least: bool| {
                for row in contest.rows.iter().filter(|row| row.name == name) {
                    let value = value(row);
                    if (value < goal) == at_least && value.total_cmp(&goal).is_ne() {
                        missed.push(format!("{place}: {name}: {what} {value:.3}, wanted {goal:.2}"));
                    }
                }
            };
            hold(OVERWRITE, "share of fio", |row| row.of_fio.median(), OVERWRITE_GOAL, true);
            hold(READ_BACK, "share of fio", |row| row.of_fio.median(), READ_BACK_GOAL, true);
            hold(OVERWRITE, "processor seconds per GiB", |row| row.cpu.median(), CPU_GOAL, false);
            if contest.peak_kib >= MEMORY_GOAL_KIB {
                missed.push(format!("{place}: {} KiB of memory, wanted {MEMORY_GOAL_KIB}", contest.peak_kib));
            }
        }
        for memory in self.memory.iter().filter(|memory| memory.peak_kib >= MEMORY_GOAL_KIB) {
            missed.push(format!("{} disks at once: {} KiB of memory", memory.disks, memory.peak_kib));
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

impl Contest {
    fn place(&self) -> String {
        format!("{} × {} MiB in {}", self.disks, self.size >> 20, self.backing)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}, Linux {}, {} processors, load {}\n",
            self.at, self.kernel, self.processors, self.load
        )?;
        writeln!(f, "| disks | | of fio: median (10 %, 90 %) | GiB/s | CPU s/GiB | rounds |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for contest in &self.contests {
            for row in &contest.rows {
                let of = &row.of_fio;
                let share =
                    format!("{:.2} ({:.2}, {:.2})", of.median(), of.percentile(10), of.percentile(90));
                let name = match row.name.as_str() {
                    FIO_WRITE => format!("{FIO_WRITE}: {}", contest.write_setting),
                    FIO_READ => format!("{FIO_READ}: {}", contest.read_setting),
                    name => name.to_owned(),
                };
                writeln!(
                    f,
                    "| {} | {name} | {share} | {:.2} | {:.3} | {} |",
                    contest.place(),
                    row.rate.median(),
                    row.cpu.median(),
                    of.count()
                )?;
            }
        }
        writeln!(f, "\n| erased at once | most memory |\n|---|---|")?;
        let mib = |kib: u64| format!("{}.{} MiB", kib / 1024, kib % 1024 * 10 / 1024);
        for contest in &self.contests {
            writeln!(f, "| {} | {} |", contest.place(), mib(contest.peak_kib))?;
        }
        for memory in &self.memory {
            let size = match memory.size >> 30 {
                0 => format!("{} MiB", memory.size >> 20),
                gib => format!("{gib} GiB"),
            };
            let end = if memory.whole { "erased and read back" } else { "cancelled soon" };
            writeln!(f, "| {} × {size}, {end} | {} |", memory.disks, mib(memory.peak_kib))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[f64]) -> Spread {
        let mut spread = Spread::default();
        values.iter().for_each(|&value| spread.add(value));
        spread
    }

    fn row(name: &str, of_fio: f64, cpu: f64) -> Row {
        Row { name: name.to_owned(), rate: spread(&[1.0]), of_fio: spread(&[of_fio]), cpu: spread(&[cpu]) }
    }

    #[test]
    fn each_goal_that_is_missed_is_named_and_no_other() {
        let shape = Shape { size: 1 << 30, rounds: 1, tries: 1, peers: false };
        let mut report = Report::begin(shape).unwrap();
        let rows = vec![row(OVERWRITE, 0.95, 0.10), row(READ_BACK, 0.90, 0.50), row("dd", 0.1, 3.0)];
        let settings = (String::new(), String::new());
        report.contests.push(Contest {
            backing: "memory".to_owned(),
            disks: 1,
            size: 1 << 30,
            write_setting: settings.0,
            read_setting: settings.1,
            peak_kib: MEMORY_GOAL_KIB - 1,
            rows,
        });
        assert_eq!(report.missed(), Vec::<String>::new());
        report.contests[0].rows[0] = row(OVERWRITE, 0.94, 0.11);
        report.contests[0].rows[1] = row(READ_BACK, 0.89, 0.50);
        report.contests[0].peak_kib += 1;
        report.memory.push(Memory { disks: 8, size: 1 << 40, whole: false, peak_kib: MEMORY_GOAL_KIB });
        let missed = report.missed();
        assert_eq!(missed.len(), 5, "{missed:?}");
        assert!(missed[2].contains("processor seconds per GiB 0.110"), "{missed:?}");
        assert!(report.to_string().contains("| anneal, overwrite | 0.94 (0.94, 0.94) | 1.00 | 0.110 | 1 |"));
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let spread = spread(&[3.0, 1.0, 2.0]);
        assert_eq!((spread.percentile(10), spread.median(), spread.percentile(90)), (1.0, 2.0, 3.0));
    }
}
