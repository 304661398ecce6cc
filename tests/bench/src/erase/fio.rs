//! fio, the limit that everything is held against.

use super::ours::Took;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Zeroes, written.
    Write,
    /// Read and not looked at.
    Read,
}

/// How fio does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// I/O engine.
    pub engine: &'static str,
    /// KiB of a request.
    pub block_kib: u64,
    /// Requests in flight of a job.
    pub depth: u32,
    /// Jobs for each disk.
    pub jobs: u32,
}

/// Those that are tried.
pub const SETTINGS: [Setting; 12] = {
    const fn setting(engine: &'static str, block_kib: u64, depth: u32, jobs: u32) -> Setting {
        Setting { engine, block_kib, depth, jobs }
    }
    [
        setting("psync", 4096, 1, 1),
        setting("psync", 1024, 1, 2),
        setting("psync", 1024, 1, 4),
        setting("psync", 256, 1, 4),
        setting("libaio", 1024, 4, 1),
        setting("libaio", 1024, 8, 1),
        setting("libaio", 256, 16, 1),
        setting("libaio", 128, 32, 1),
        setting("io_uring", 4096, 4, 1),
        setting("io_uring", 1024, 4, 1),
        setting("io_uring", 256, 16, 1),
        setting("io_uring", 128, 32, 1),
    ]
};

impl Setting {
    /// For the table: `libaio 1024k×8, 1 job`.
    pub fn describe(self) -> String {
        let Setting { engine, block_kib, depth, jobs } = self;
        format!("{engine} {block_kib}k×{depth}, {jobs} job{}", if jobs == 1 { "" } else { "s" })
    }

    /// Run fio over all of each disk, all at once. The clock is fio's own: its start is not in it.
    ///
    /// # Errors
    /// When fio fails, or says nothing of its time.
    pub fn run(self, way: Way, disks: &[PathBuf], size: u64) -> Result<Took> {
        let mut command = Command::new("fio");
        let part = size / u64::from(self.jobs);
        command.args(["--output-format=json", "--direct=1", "--zero_buffers=1", "--thread"]);
        command.arg(format!("--ioengine={}", self.engine));
        command.arg(format!("--bs={}k", self.block_kib));
        command.arg(format!("--iodepth={}", self.depth));
        command.arg(format!("--rw={}", if way == Way::Write { "write" } else { "read" }));
        for (disk, node) in disks.iter().enumerate() {
            for job in 0..self.jobs {
                command.arg(format!("--name=disk{disk}-{job}"));
                command.arg(format!("--filename={}", node.display()));
                command.arg(format!("--offset={}", part * u64::from(job)));
                command.arg(format!("--size={part}"));
            }
        }
        let output = command.output().context("fio")?;
        if !output.status.success() {
            bail!("fio: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let result: Value = serde_json::from_slice(&output.stdout).context("the result of fio")?;
        parse(&result, way).context("fio reported no time")
    }
}

/// The longest run and the processor time of all jobs; fio gives it as percent of their runs.
fn parse(result: &Value, way: Way) -> Option<Took> {
    let name = if way == Way::Write { "write" } else { "read" };
    let mut took = Took::default();
    for job in result["jobs"].as_array()? {
        let seconds = job[name]["runtime"].as_f64()? / 1000.0;
        took.seconds = took.seconds.max(seconds);
        took.cpu_s += (job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?) / 100.0
            * job["job_runtime"].as_f64()?
            / 1000.0;
    }
    (took.seconds > 0.0).then_some(took)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_longest_run_and_all_processor_time_count() {
        let job = |runtime: u64| {
            json!({"write": {"runtime": runtime}, "read": {"runtime": 0}, "job_runtime": runtime,
                                       "usr_cpu": 10.0, "sys_cpu": 40.0})
        };
        let took = parse(&json!({"jobs": [job(500), job(1500)]}), Way::Write).unwrap();
        assert_eq!((took.seconds, took.cpu_s), (1.5, 1.0));
        assert!(parse(&json!({"jobs": [job(500)]}), Way::Read).is_none());
    }
}
