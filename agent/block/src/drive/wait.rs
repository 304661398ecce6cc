//! Waiting for a drive.

use super::{Work, fault};
use crate::fault::Fault;
use std::time::Duration;

/// How often the watcher is told and asked; the drive is asked every fourth time.
const TICK: Duration = Duration::from_millis(250);
const TICKS_PER_QUESTION: u32 = 4;
/// A drive whose progress stands still for so long, and that has had its time, is taken to be stuck.
const STALL: Duration = Duration::from_secs(1800);
/// The least time any operation gets.
const LEAST: Duration = Duration::from_secs(3600);

/// What a drive says of its operation.
pub(super) enum Seen {
    /// It goes on; done so far in 65536ths, where the drive says.
    Running(Option<u16>),
    /// It has ended well.
    Done,
}

/// Look until it is done. The deadline follows from the estimate: three times that, and at least an hour.
pub(super) fn wait(
    work: &Work<'_>,
    what: &'static str,
    mut look: impl FnMut() -> Result<Seen, Fault>,
) -> Result<(), Fault> {
    let deadline = LEAST.max(work.estimate * 3);
    let (mut waited, mut moved, mut last) = (Duration::ZERO, Duration::ZERO, None);
    loop {
        let progress = match look()? {
            Seen::Done => return Ok(()),
            Seen::Running(progress) => progress,
        };
        if progress != last {
            (last, moved) = (progress, waited);
        }
        if waited >= deadline && waited - moved >= STALL {
            let (hours, done) = (waited.as_secs() / 3600, u32::from(last.unwrap_or(0)) * 100 / 65536);
            return Err(fault(what, format!("the drive is stuck: {done} % after {hours} hours")));
        }
        for _ in 0..TICKS_PER_QUESTION {
            (work.tell)(last.unwrap_or(0));
            if work.watch.cancelled() {
                return Err(Fault::Cancelled);
            }
            work.drive.transport.pause(TICK);
            waited += TICK;
        }
    }
}
