//! The power state of many nodes, which a controller reads again and again: whether it reads each within its period, and how many it
//! reads in a second when it does nothing else.
//!
//! ```text
//!   period.rs   a fleet of Redfish nodes at rest; between two readings of a node lies the period, and not much more
//!   rate.rs     a few nodes that are always due: readings of the controller in a second, next to a client that does nothing else
//!   ipmi.rs     BMCs for it by OpenIPMI, and ipmitool as that client
//!   redfish.rs  an HTTP client that reads the power state of a fleet
//! ```

pub mod ipmi;
pub mod period;
pub mod rate;
pub mod redfish;

use anyhow::Result;
use hostile::controller::Controller;
use hostile::memory::MIB;
use serde::Serialize;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Nodes from which on the goal is held.
pub const GOAL_NODES: u32 = 100_000;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Shape {
    /// The `anneal-controller`.
    pub program: PathBuf,
    /// Redfish nodes that are read within a period.
    pub nodes: u32,
    /// The period, in seconds: `power_sync_s`.
    pub period_s: u32,
    /// Redfish nodes that are always due.
    pub redfish: u32,
    /// IPMI nodes that are always due.
    pub ipmi: u32,
    /// How long these are read.
    pub span: Duration,
    /// What happens by chance.
    pub seed: u64,
    /// How long all nodes may take until they are manageable.
    pub limit: Duration,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Processors of this machine.
    pub processors: usize,
    /// Its load in the minute before, from `/proc/loadavg`.
    pub load_before: String,
    /// A fleet at rest.
    pub period: period::Report,
    /// Nodes that are always due, by driver.
    pub rates: Vec<rate::Report>,
}

/// Measures controllers in directories below `dir`.
///
/// # Errors
/// When a node fails, a reading fails, or time is up.
pub async fn run(shape: &Shape, dir: &Path) -> Result<Report> {
    let load_before = std::fs::read_to_string("/proc/loadavg")?.trim().to_owned();
    let below = |name: &str| -> Result<PathBuf> {
        let path = dir.join(name);
        std::fs::create_dir(&path)?;
        Ok(path)
    };
    let period = period::run(shape, &below("period")?).await?;
    let rates = vec![
        rate::of_redfish(shape, &below("redfish")?).await?,
        rate::of_ipmi(shape, &below("ipmi")?).await?,
    ];
    Ok(Report { processors: std::thread::available_parallelism()?.get(), load_before, period, rates })
}

/// Starts a controller that reads the power state of resting nodes this often.
async fn controller(shape: &Shape, dir: &Path, period_s: u32) -> Result<Controller> {
    let settings = format!("[conductor]\npower_sync_s = {period_s}\n");
    Controller::start_at(&shape.program, dir, Ipv4Addr::LOCALHOST, &settings).await
}

impl Report {
    /// The goals that are missed.
    pub fn missed(&self) -> Vec<String> {
        self.period.missed()
    }

    /// Writes all numbers as JSON.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        Ok(std::fs::write(path, serde_json::to_vec_pretty(self)?)?)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period::Report { nodes, period_s, gaps, seconds, processor_ms, simulator_ms, resident } =
            &self.period;
        writeln!(f, "{} processors, load before: {}", self.processors, self.load_before)?;
        writeln!(
            f,
            "{nodes} Redfish nodes, period {period_s} s: {} read, {} not; later than the period by {:.2} s (median), {:.2} s (99 %), {:.2} s (most)",
            gaps.read, gaps.unread, gaps.late_median_s, gaps.late_p99_s, gaps.late_most_s
        )?;
        writeln!(
            f,
            "{} readings in {seconds:.0} s; for each {processor_ms:.2} ms of processor of the controller, {simulator_ms:.2} ms of the simulator; \
             {:.0} MiB resident",
            gaps.readings,
            *resident as f64 / MIB as f64
        )?;
        writeln!(f, "| | readings | its limit | share | processor of the controller |")?;
        writeln!(f, "|---|---|---|---|---|")?;
        for rate in &self.rates {
            writeln!(
                f,
                "| {} | {:.0}/s | {:.0}/s | {:.2} | {:.2} ms |",
                rate.driver,
                rate.per_second,
                rate.limit,
                rate.per_second / rate.limit,
                rate.processor_ms
            )?;
        }
        Ok(())
    }
}
