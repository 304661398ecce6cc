//! How far the work is.

use crate::checkpoint::Checkpoint;
use std::collections::VecDeque;
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

const WINDOW: Duration = Duration::from_secs(5);

/// Rate over a sliding window.
#[derive(Debug, Default)]
pub(super) struct Meter {
    seen: VecDeque<(Instant, u64)>,
}

impl Meter {
    /// Bytes per second over the last [`WINDOW`], `done` bytes being done at `now`.
    fn rate(&mut self, now: Instant, done: u64) -> u64 {
        self.seen.push_back((now, done));
        while self.seen.len() > 2 && now.duration_since(self.seen[1].0) >= WINDOW {
            self.seen.pop_front();
        }
        let (first, before) = self.seen[0];
        let millis = u64::try_from(now.duration_since(first).as_millis()).unwrap_or(u64::MAX);
        (done.saturating_sub(before)).saturating_mul(1000).checked_div(millis).unwrap_or(0)
    }

    /// Progress in a phase, `counted` of `total` being done.
    pub(super) fn progress(
        &mut self,
        phase: Phase,
        (received, done): (u64, u64),
        counted: u64,
        total: Option<u64>,
    ) -> Progress {
        let rate = self.rate(Instant::now(), counted);
        let left = total.map(|total| total.saturating_sub(counted));
        let eta = left.and_then(|left| left.checked_div(rate)).map(Duration::from_secs);
        Progress { phase, received, done, total, rate, eta }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let (mut meter, begun) = (Meter::default(), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!(meter.rate(at(0), 0), 0);
        assert_eq!(meter.rate(at(1), 100), 100);
        (2..20).for_each(|second| {
            meter.rate(at(second), 100);
        });
        assert_eq!(meter.rate(at(20), 100), 0, "nothing moved for long");
    }
}
