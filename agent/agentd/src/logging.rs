//! The agent's log: to standard error (the console, in the ramdisk) and into a ring that
//! `log.collect_system_logs` reads.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Bytes of log kept in memory.
const RING_BYTES: usize = 256 * 1024;

/// The crates whose lines the log shows at info; of all others it shows warnings.
const OUR_CRATES: [&str; 9] = [
    "agentd",
    "anneal_agent",
    "block",
    "boot_entries",
    "hwm_generic",
    "hwm_host",
    "image_writer",
    "ramdisk_init",
    "sandbox",
];

/// The last [`RING_BYTES`] of the log, and where lines are shown.
#[derive(Clone, Default)]
pub struct LogRing {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    ring: VecDeque<u8>,
    console: Option<File>,
}

impl LogRing {
    /// The ring's content, oldest line first.
    pub fn bytes(&self) -> Vec<u8> {
        let inner = self.lock();
        let mut bytes: Vec<u8> = inner.ring.iter().copied().collect();
        // The oldest line may have lost its head.
        if bytes.len() == RING_BYTES
            && let Some(end) = bytes.iter().position(|&byte| byte == b'\n')
        {
            bytes.drain(..=end);
        }
        bytes
    }

    /// Show lines on this file instead of standard error.
    pub fn show_on(&self, console: File) {
        self.lock().console = Some(console);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Make this the log of the process: info and above, or debug of our own crates.
    pub fn install(&self, debug: bool) {
        let ours = if debug { LevelFilter::DEBUG } else { LevelFilter::INFO };
        let targets = Targets::new()
            .with_default(LevelFilter::WARN)
            .with_targets(OUR_CRATES.map(|target| (target, ours)));
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(self.clone())
            .log_internal_errors(false);
        // A second subscriber in one process (tests) is refused; the first stays.
        if let Err(error) = tracing_subscriber::registry().with(targets).with(lines).try_init() {
            eprintln!("log: {error}");
        }
        std::panic::set_hook(Box::new(|panic| tracing::error!("panic: {panic}")));
    }
}

impl Write for LogRing {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut inner = self.lock();
        inner.ring.extend(line);
        let excess = inner.ring.len().saturating_sub(RING_BYTES);
        inner.ring.drain(..excess);
        // A console that cannot be written to must not stop the agent; the ring has the line.
        let _ = match &mut inner.console {
            Some(console) => console.write_all(line),
            None => io::stderr().write_all(line),
        };
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LogRing {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The crates of the agent are the folders of `agent/`.
    #[test]
    fn every_crate_of_the_agent_is_logged() {
        let agent = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("agent/");
        let mut crates: Vec<String> = std::fs::read_dir(agent)
            .expect("agent/")
            .map(|entry| entry.expect("entry").file_name().into_string().expect("utf-8").replace('-', "_"))
            .collect();
        crates.extend(["anneal_agent", "hwm_generic"].map(String::from));
        crates.sort();
        assert_eq!(crates, OUR_CRATES);
    }

    #[test]
    fn the_ring_keeps_whole_newest_lines() {
        let ring = LogRing::default();
        ring.show_on(tempfile::tempfile().expect("tempfile"));
        for number in 0..40_000 {
            writeln!(ring.clone(), "line {number}").expect("never fails");
        }
        let text = String::from_utf8(ring.bytes()).expect("utf-8");
        assert!(text.len() <= RING_BYTES && text.len() > RING_BYTES - 64);
        assert!(text.starts_with("line ") && text.ends_with("line 39999\n"));
    }
}
