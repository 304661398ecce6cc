//! How far the work is.

use crate::checkpoint::Checkpoint;
use block::progress::eta;
use std::time::{Duration, Instant};

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The image arrives and is written.
    Writing,
    /// The disk is read back.
    ReadingBack,
    /// Partition tables and configuration drive.
    Finishing,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The phase.
    pub phase: Phase,
    /// Bytes that were downloaded.
    pub received: u64,
    /// Bytes that were given to the disk, or read back.
    pub done: u64,
    /// Bytes to do in this phase: of the download while writing, of the disk while reading back.
    pub total: Option<u64>,
    /// Bytes per second over the last five seconds, of what `total` counts.
    pub rate: u64,
    /// Time to the end of the phase at this rate.
    pub eta: Option<Duration>,
}

/// Receives the progress of the work and may stop it. Called from the thread that called [`crate::write()`].
pub trait Watch {
    /// Progress, several times a second.
    fn progress(&self, progress: Progress);
    /// Whether to stop. Called several times a second.
    fn cancelled(&self) -> bool;
    /// A later session can go on from here.
    fn checkpoint(&self, _: Checkpoint) {}
    /// Something that an operator should know: a mirror that has stalled, a connection that broke.
    fn note(&self, _: &str) {}
}

/// Ignores progress and never cancels.
impl Watch for () {
    fn progress(&self, _: Progress) {}
    fn cancelled(&self) -> bool {
        false
    }
}

/// The rate of a phase.
#[derive(Debug, Default)]
pub(super) struct Meter(block::progress::Meter);

impl Meter {
    /// Progress in a phase, `counted` of `total` being done.
    pub(super) fn progress(
        &mut self,
        phase: Phase,
        (received, done): (u64, u64),
        counted: u64,
        total: Option<u64>,
    ) -> Progress {
        let rate = self.0.rate(Instant::now(), counted);
        let eta = total.and_then(|total| eta(counted, total, rate));
        Progress { phase, received, done, total, rate, eta }
    }
}
