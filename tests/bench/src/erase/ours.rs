//! The engine of the agent itself, in a process of its own that holds nothing else: its clock, its processor time, its
//! memory.

use anyhow::{Context, Result, bail, ensure};
use block::{Device, Ending, Filter, Method, Phase, Progress, Roots, Watch};
use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What one erase of some disks took.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Erased {
    /// All of them overwritten.
    pub overwrite: Took,
    /// All of them read back and compared; nothing where it was stopped before.
    pub read_back: Took,
    /// The most memory that the process ever had resident, in KiB (`VmHWM`).
    pub peak_kib: u64,
}

/// Time of a phase.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Took {
    /// By the clock, in seconds.
    pub seconds: f64,
    /// Processor time of the process, threads and its side of the kernel included, in seconds.
    pub cpu_s: f64,
}

impl std::fmt::Display for Took {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} {:.2}", self.seconds, self.cpu_s)
    }
}

/// Overwrite `disks` with `program`, which is this one, as a child.
///
/// # Errors
/// When the engine did not end as it should.
pub fn erase(program: &Path, disks: &[PathBuf], stop_after: Option<u64>) -> Result<Erased> {
    let mut command = Command::new(program);
    command.arg("overwrite").args(disks);
    command.args(stop_after.map(|bytes| format!("--stop-after={bytes}")));
    let output = command.output().context("the bench as its own child")?;
    if !output.status.success() {
        bail!("the engine failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("the result of the child")
}

/// The child: overwrite all of `disks` at once and print the result to standard output. With `stop_after` each is
/// cancelled after that many bytes.
///
/// # Errors
/// When a disk cannot be opened or its erase fails.
pub fn child(disks: &[PathBuf], stop_after: Option<u64>) -> Result<()> {
    let roots = Roots::default();
    let open = |disk: block::Disk| -> Result<Device> {
        let probe = block::probe(&disk)?;
        if let Some(refusal) = block::judge(&probe).first() {
            bail!("{refusal}");
        }
        Ok(Device::open(&roots, &probe)?)
    };
    let found = block::list(&roots, &Filter::Only(disks.to_vec()))?;
    ensure!(found.len() == disks.len(), "found {} disks instead of {}", found.len(), disks.len());
    let devices = found.into_iter().map(open).collect::<Result<Vec<_>>>()?;
    let clock = Clock { all: Barrier::new(devices.len()), spans: Mutex::default() };
    std::thread::scope(|scope| {
        for device in &devices {
            let clock = &clock;
            scope.spawn(move || {
                let watch = Watcher { clock, stop_after, passed: Mutex::default() };
                let ending = block::erase(device, &[Method::Overwrite], &watch).ending;
                let meant = if stop_after.is_some() { Ending::Cancelled } else { Ending::Erased };
                if ending != meant {
                    eprintln!("{}: {ending:?}", device.disk().describe());
                    // The others would wait for this one.
                    std::process::exit(1);
                }
            });
        }
    });
    let spans = *clock.spans.lock().unwrap_or_else(PoisonError::into_inner);
    let took = |phase: Phase| spans[index(phase)].map_or(Took::default(), Span::took);
    let erased = Erased {
        overwrite: took(Phase::Erasing),
        read_back: took(Phase::Verifying),
        peak_kib: peak_kib(&std::fs::read_to_string("/proc/self/status")?)?,
    };
    println!("{}", serde_json::to_string(&erased)?);
    Ok(())
}

/// From the first disk that began a phase to the last that ended it.
#[derive(Debug, Clone, Copy)]
struct Span {
    begun: (Instant, Duration),
    ended: (Instant, Duration),
}

impl Span {
    fn took(self) -> Took {
        let seconds = self.ended.0.duration_since(self.begun.0).as_secs_f64();
        Took { seconds, cpu_s: self.ended.1.saturating_sub(self.begun.1).as_secs_f64() }
    }
}

struct Clock {
    all: Barrier,
    spans: Mutex<[Option<Span>; 2]>,
}

struct Watcher<'a> {
    clock: &'a Clock,
    stop_after: Option<u64>,
    /// Bytes overwritten, and whether the disk waited for the others.
    passed: Mutex<(u64, bool)>,
}

fn index(phase: Phase) -> usize {
    usize::from(phase == Phase::Verifying)
}

impl Watch for Watcher<'_> {
    fn progress(&self, progress: Progress) {
        if progress.phase == Phase::Sampling {
            return;
        }
        let now = (Instant::now(), used());
        {
            let mut spans = self.clock.spans.lock().unwrap_or_else(PoisonError::into_inner);
            spans[index(progress.phase)].get_or_insert(Span { begun: now, ended: now }).ended = now;
        }
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.phase == Phase::Erasing {
            passed.0 = progress.done;
            if progress.done == progress.total && !passed.1 {
                passed.1 = true;
                // No disk is read back while another is still overwritten.
                self.clock.all.wait();
            }
        }
    }

    fn cancelled(&self) -> bool {
        let passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        self.stop_after.is_some_and(|bytes| passed.0 >= bytes)
    }
}

/// Processor time that this process has used.
fn used() -> Duration {
    let time = |time: nix::sys::time::TimeVal| {
        Duration::from_micros(u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or(0))
    };
    getrusage(UsageWho::RUSAGE_SELF)
        .map_or(Duration::ZERO, |usage| time(usage.user_time()) + time(usage.system_time()))
}

/// The most memory that a process ever had resident, in KiB, of its `/proc/…/status`.
///
/// # Errors
/// When it is not there.
pub fn peak_kib(status: &str) -> Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_in_kib() {
        assert_eq!(peak_kib("Name:\tx\nVmHWM:\t   12345 kB\nVmRSS:\t 1 kB\n").unwrap(), 12345);
        assert!(peak_kib("Name:\tx\n").is_err());
    }
}
