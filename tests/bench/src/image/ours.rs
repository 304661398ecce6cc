//! The agent's writer, in a process of its own that holds nothing else: its clock and its memory.

use super::disk;
use crate::erase::ours::peak_kib;
use anyhow::{Context, Result, bail};
use image_writer::source::{Host, Proxies, RequestHeaders, Source};
use image_writer::{
    CHECKPOINT_BYTES, ChecksumSource, DiskIdentity, Hosts, Limits, Phase, Progress, Request, Trust, Watch,
};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// What writing one image took.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Written {
    /// Until it was on the disk, flushed, in seconds.
    pub written_s: f64,
    /// Until it was read back, and the disk could be booted, in seconds.
    pub done_s: f64,
    /// The most memory that the process ever had resident, in KiB (`VmHWM`).
    pub peak_kib: u64,
    /// SHA-256 of what the disk returned.
    pub sha256: String,
}

/// Write what is at `url` to `device` with `program`, which is this one, as a child.
///
/// # Errors
/// When it is not written.
pub fn write(program: &Path, url: &str, sha256: &str, device: &Path) -> Result<Written> {
    let output = Command::new(program).args(["image-write", url, sha256]).arg(device).output();
    let output = output.context("the bench as its own child")?;
    if !output.status.success() {
        bail!("the writer failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("the result of the child")
}

/// Where the benchmark's server is.
///
/// # Errors
/// When `url` is none.
pub fn source(url: &str) -> Result<Source> {
    let hosts = Hosts { rules: vec![Host::Net("127.0.0.0/8".parse()?)], never: Vec::new() };
    let url = url.parse().map_err(anyhow::Error::msg)?;
    Ok(Source {
        url,
        copies: Vec::new(),
        trust: Trust::default(),
        hosts,
        proxies: Proxies::default(),
        limits: Limits::default(),
        headers: RequestHeaders::default(),
    })
}

/// The child: prints the result to standard output.
///
/// # Errors
/// When the image is not written.
pub fn child(url: &str, sha256: &str, device: &Path) -> Result<()> {
    let device = disk::open(device)?;
    let request = Request {
        source: source(url)?,
        checksum: ChecksumSource::of(None, None, Some(sha256), false).map_err(anyhow::Error::msg)?,
        allow_md5: false,
        format: None,
        configdrive: None,
        checkpoint_every: CHECKPOINT_BYTES,
        disk: DiskIdentity::of(Some("BENCH"), None),
        checkpoint: None,
    };
    let begun = Instant::now();
    let watch = Last(Cell::new(begun));
    let record = image_writer::write(&request, &device, &watch)?;
    let written = Written {
        written_s: watch.0.get().duration_since(begun).as_secs_f64(),
        done_s: begun.elapsed().as_secs_f64(),
        peak_kib: peak_kib(&std::fs::read_to_string("/proc/self/status")?)?,
        sha256: record.read_back_sha256,
    };
    println!("{}", serde_json::to_string(&written)?);
    Ok(())
}

/// When writing was reported last: at its end, after the flush.
struct Last(Cell<Instant>);

impl Watch for Last {
    fn progress(&self, progress: Progress) {
        if progress.phase == Phase::Writing {
            self.0.set(Instant::now());
        }
    }

    fn cancelled(&self) -> bool {
        false
    }
}
