//! The process, as client libraries of Prometheus report it.

use crate::text::{Kind, Text};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of a page where the kernel says nothing else: x86-64 and most of aarch64.
const PAGE: u64 = 4096;

/// The process that measures itself.
#[derive(Debug)]
pub struct Process {
    started_at: f64,
}

impl Process {
    /// This one, which starts now.
    pub fn starting() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started_at: since.as_secs_f64() }
    }

    /// Write what is known of it. What the kernel does not say is left out.
    pub fn write(&self, text: &mut Text) {
        text.gauge(
            "process_start_time_seconds",
            "When the process started, in seconds since 1970.",
            self.started_at,
        );
        if let Some(bytes) = resident_bytes() {
            text.gauge("process_resident_memory_bytes", "Memory of the process.", bytes);
        }
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            text.gauge("process_open_fds", "Open file descriptors.", open.count());
        }
        text.family("anneal_build_info", Kind::Gauge, "The version of the controller.");
        text.sample("anneal_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    }
}

/// Of proc(5), `statm`: the second number, in pages.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    statm.split(' ').nth(1)?.parse::<u64>().ok()?.checked_mul(PAGE)
}
