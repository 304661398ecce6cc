//! When a disk stands still, and when a step has taken too long.

use block::{Method, Probe, Progress};
use std::time::{Duration, Instant};

/// How long a disk may make no progress before the stall is reported.
pub(crate) const STALL: Duration = Duration::from_secs(600);
/// What a step may take beyond three times what it was thought to.
const ALLOWANCE: Duration = Duration::from_secs(3600);

/// Notices that a disk stands still.
#[derive(Debug, Default)]
pub(crate) struct Stall {
    /// What was seen last that was new, and when: by the clock that counts, and in seconds since 1970.
    seen: Option<(Progress, Instant, f64)>,
}

impl Stall {
    /// Since when (in seconds since 1970) the disk stands still, once that has lasted for `limit`.
    ///
    /// A method that no drive can interrupt reports no progress either, so it never counts as stalled.
    pub(crate) fn since(
        &mut self,
        progress: Progress,
        limit: Duration,
        at: Instant,
        unix: f64,
    ) -> Option<f64> {
        let place = |seen: &Progress| (seen.phase, seen.method, seen.done);
        match &self.seen {
            Some((seen, ..)) if place(seen) == place(&progress) => {}
            _ => self.seen = Some((progress, at, unix)),
        }
        let (seen, since, unix) = self.seen.as_ref()?;
        let reports_progress = seen.method.is_none_or(Method::abortable);
        (reports_progress && at.duration_since(*since) >= limit).then_some(*unix)
    }
}

/// When the step must have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline {
    begun: Instant,
    /// After that much time.
    length: Duration,
    /// An argument says so.
    asked: bool,
}

impl Deadline {
    /// `asked` for, or by what each disk takes when every method of its list is tried and read back.
    pub(crate) fn new(
        begun: Instant,
        asked: Option<Duration>,
        disks: &[Duration],
        concurrency: usize,
    ) -> Self {
        let length = asked.unwrap_or_else(|| allowed(disks, concurrency));
        Deadline { begun, length, asked: asked.is_some() }
    }

    /// Whether it has passed.
    pub(crate) fn passed(&self) -> bool {
        self.begun.elapsed() >= self.length
    }

    /// The reason of a step that it ended.
    pub(crate) fn text(&self) -> String {
        let why = if self.asked { "argument deadline_s" } else { "three times the estimate and an hour" };
        format!("the deadline of the step passed, {} s after its beginning ({why})", self.length.as_secs())
    }
}

/// Three times what the disks take with `concurrency` of them at once, in whatever order, and an hour.
pub(crate) fn allowed(disks: &[Duration], concurrency: usize) -> Duration {
    let at_once = u32::try_from(concurrency.min(disks.len()).max(1)).unwrap_or(u32::MAX);
    let sum = disks.iter().fold(Duration::ZERO, |sum, disk| sum.saturating_add(*disk));
    let longest = disks.iter().max().copied().unwrap_or_default();
    (sum / at_once).saturating_add(longest).saturating_mul(3).saturating_add(ALLOWANCE)
}

/// What a disk takes at most: all methods, each of them read back.
pub(crate) fn longest(probe: &Probe, methods: &[Method]) -> Duration {
    let pass = block::plan::estimate(probe, Method::Overwrite);
    let one = |method: &Method| block::plan::estimate(probe, *method).saturating_add(pass);
    methods.iter().map(one).fold(Duration::ZERO, Duration::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::Phase;

    const SECOND: Duration = Duration::from_secs(1);

    fn progress(method: Option<Method>, done: u64) -> Progress {
        Progress { phase: Phase::Erasing, method, done, total: 100, rate: 0, eta: None }
    }

    #[test]
    fn a_stall_is_reported_with_its_start_until_progress_resumes() {
        let (begun, mut stall) = (Instant::now(), Stall::default());
        let mut at = |second: u32, done| {
            stall.since(
                progress(Some(Method::Overwrite), done),
                STALL,
                begun + SECOND * second,
                f64::from(second),
            )
        };
        assert_eq!(at(0, 0), None);
        assert_eq!(at(599, 0), None);
        assert_eq!(at(600, 0), Some(0.0));
        assert_eq!(at(900, 0), Some(0.0));
        assert_eq!(at(901, 1), None, "it moves again");
        assert_eq!(at(1500, 1), None);
        assert_eq!(at(1501, 1), Some(901.0));
    }

    #[test]
    fn a_method_without_progress_is_never_reported_as_stalled() {
        let (begun, mut stall) = (Instant::now(), Stall::default());
        for hour in 0..9 {
            let at = begun + SECOND * 3600 * hour;
            assert_eq!(stall.since(progress(Some(Method::AtaErase), 0), STALL, at, 0.0), None);
        }
        assert_eq!(stall.since(progress(None, 0), STALL, begun, 0.0), None, "another phase begins anew");
        assert_eq!(stall.since(progress(None, 0), STALL, begun + STALL, 0.0), Some(0.0));
    }

    #[test]
    fn the_deadline_is_three_times_the_estimate_and_an_hour() {
        let disks = [SECOND * 1000, SECOND * 200];
        assert_eq!(allowed(&disks, 2), SECOND * (3 * 1600 + 3600));
        assert_eq!(allowed(&disks, 1), SECOND * (3 * 2200 + 3600), "one after the other");
        assert_eq!(allowed(&[], 16), ALLOWANCE);
        let disk = block::Disk { size: 120_000_000 * 10, rotational: true, ..block::Disk::default() };
        let probe = Probe { disk, ..Probe::default() };
        assert_eq!(longest(&probe, &[Method::Overwrite]), SECOND * 22, "written and read back");
        let now = Instant::now();
        let asked = Deadline::new(now, Some(Duration::ZERO), &disks, 2);
        assert!(asked.passed() && asked.text().contains("0 s after its beginning (argument deadline_s)"));
        assert!(!Deadline::new(now, None, &disks, 2).passed());
    }
}
