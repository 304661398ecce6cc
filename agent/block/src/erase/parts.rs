//! A pass in parts of about ten seconds: after each, everything below its end is on the disk, and an interrupted erase
//! can go on from there.

use super::record::Attempt;
use crate::fault::Fault;
use crate::pass::Pass;
use crate::progress::Meter;
use crate::target::Target;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The first part, and the shortest. No chunk of a pass is longer, and all fit into it.
const FIRST: u64 = 64 << 20;
/// How long a part shall take: what an interruption costs at most, against the pipeline that runs empty at its end.
const PERIOD: Duration = Duration::from_secs(10);
/// No part grows by more at once: the speed of a first part that went to a cache says little about the disk.
const GROWTH: u64 = 32;

/// Do the pass from `from` on, in `lanes` lanes; `kept` is called with each offset below which all is written and
/// flushed.
pub(super) fn run<W>(
    pass: &Pass,
    target: &dyn Target,
    from: u64,
    kept: &dyn Fn(u64),
    lanes: usize,
    lane: impl Fn() -> W,
) -> Attempt
where
    W: FnMut(u64, u64, &mut dyn FnMut(u64)) -> Result<ControlFlow<()>, Fault> + Send,
{
    let (mut at, mut length, mut meter) = (from, FIRST, Meter::default());
    while at < pass.total {
        let (end, begun) = ((at + length).min(pass.total), Instant::now());
        let passed = pass.part(at..end, &mut meter, (0..lanes).map(|_| lane()));
        if passed.result.is_err() {
            return (passed.done, passed.result);
        }
        if let Err(source) = target.flush() {
            return (passed.done, Err(Fault::Command { what: "flush", source }));
        }
        kept(end);
        (at, length) = (end, next(length, begun.elapsed()));
    }
    (at, Ok(()))
}

/// As much as takes [`PERIOD`] where `length` took `took`.
fn next(length: u64, took: Duration) -> u64 {
    let ideal = u128::from(length) * PERIOD.as_millis() / took.as_millis().max(1);
    let most = length.saturating_mul(GROWTH).min(1 << 40);
    let length = u64::try_from(ideal).unwrap_or(most).min(most);
    (length / FIRST * FIRST).max(FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_take_ten_seconds_at_any_speed() {
        assert_eq!(next(FIRST, Duration::from_millis(427)), 23 * FIRST, "157 MB/s");
        assert_eq!(next(23 * FIRST, Duration::from_secs(10)), 23 * FIRST);
        assert_eq!(next(23 * FIRST, Duration::from_secs(3600)), FIRST, "it got slow");
        assert_eq!(next(FIRST, Duration::ZERO), 32 * FIRST, "it grows step by step");
        assert_eq!(next(1 << 40, Duration::ZERO), 1 << 40, "and not without limit");
    }
}
