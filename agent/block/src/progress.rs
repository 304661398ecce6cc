//! How far the work on one disk is.

use crate::checkpoint::Checkpoint;
use crate::method::Method;
use crate::temperature::Temperature;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Phase of the work on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Content is recorded before anything is written.
    Sampling,
    /// Being erased.
    Erasing,
    /// Being read back.
    Verifying,
}

/// How far a phase is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The phase.
    pub phase: Phase,
    /// The method in use; `None` while sampling and while only metadata is erased.
    pub method: Option<Method>,
    /// Bytes done in this phase.
    pub done: u64,
    /// Bytes to do in this phase.
    pub total: u64,
    /// Bytes per second over the last five seconds; 0 when nothing moved.
    pub rate: u64,
    /// Time to the end of the phase at this rate; `None` while unknown.
    pub eta: Option<Duration>,
}

/// Receives the progress of the work and may stop it. Called from the thread that called [`crate::erase()`], at least four
/// times a second while the work makes progress or waits.
pub trait Watch: Sync {
    /// Progress, several times a second.
    fn progress(&self, progress: Progress);
    /// Returns whether to stop. Called several times a second.
    fn cancelled(&self) -> bool;
    /// An overwrite can go on from here with [`crate::resume`] when it is interrupted. About every ten seconds.
    fn checkpoint(&self, _: Checkpoint) {}
    /// The disk is too hot and rests, at this temperature; `None`: it goes on.
    fn resting(&self, _: Option<Temperature>) {}
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
pub struct Meter {
    seen: VecDeque<(Instant, u64)>,
}

impl Meter {
    /// Bytes per second over the last [`WINDOW`], `done` bytes being done at `now`.
    pub fn rate(&mut self, now: Instant, done: u64) -> u64 {
        self.seen.push_back((now, done));
        while self.seen.len() > 2 && self.seen.get(1).is_some_and(|&(at, _)| now.duration_since(at) >= WINDOW)
        {
            self.seen.pop_front();
        }
        let Some(&(since, before)) = self.seen.front() else { return 0 };
        let millis = now.duration_since(since).as_millis();
        let bytes = u128::from(done.saturating_sub(before)) * 1000;
        bytes.checked_div(millis).and_then(|rate| u64::try_from(rate).ok()).unwrap_or(0)
    }
}

/// Time left; `None` when nothing moves.
pub fn eta(done: u64, total: u64, rate: u64) -> Option<Duration> {
    total.saturating_sub(done).checked_div(rate).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_forgets_what_is_older_than_the_window() {
        let (start, mut meter) = (Instant::now(), Meter::default());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(meter.rate(at(0), 0), 0);
        assert_eq!(meter.rate(at(1), 1000), 1000);
        for second in 2..20 {
            meter.rate(at(second), 1000 + (second - 1) * 10);
        }
        assert_eq!(meter.rate(at(20), 1190), 10);
        for second in 21..28 {
            meter.rate(at(second), 1190);
        }
        assert_eq!(meter.rate(at(28), 1190), 0, "stalled");
        assert_eq!(eta(1190, 2000, 0), None);
        assert_eq!(eta(1000, 2000, 10), Some(Duration::from_secs(100)));
    }
}
