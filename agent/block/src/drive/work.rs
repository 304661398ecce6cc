//! One operation in a drive, and waiting for its end.

use crate::fault::Fault;
use crate::probe::Probe;
use crate::progress::Watch;
use crate::transport::Transport;
use std::io;
use std::time::Duration;

/// How often the watcher is called; the drive is asked every fourth time.
const TICK: Duration = Duration::from_millis(250);
const TICKS_PER_QUESTION: u32 = 4;
/// A drive that has had its time and made no progress for this long counts as stuck.
const STALL: Duration = Duration::from_secs(1800);
/// The least time any operation gets.
const LEAST: Duration = Duration::from_secs(3600);

/// A drive as its methods need it.
#[derive(Clone, Copy)]
pub struct Drive<'a> {
    /// The way to it.
    pub transport: &'a dyn Transport,
    /// What it said when it was judged.
    pub probe: &'a Probe,
}

impl std::fmt::Debug for Drive<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive").field("probe", self.probe).finish_non_exhaustive()
    }
}

/// One operation in a drive, with its watcher.
pub struct Work<'a> {
    /// The drive.
    pub drive: Drive<'a>,
    /// Called with the progress, in 65536ths.
    pub report: &'a dyn Fn(u16),
    /// May stop the waiting. The drive continues its operation; the next run finds it running.
    pub watch: &'a dyn Watch,
    /// How long the operation takes, as planned.
    pub estimate: Duration,
}

/// What a drive says of its operation.
pub(super) enum DriveStatus {
    /// The operation is running; done so far in 65536ths, where the drive reports it.
    Running(Option<u16>),
    /// The operation has succeeded.
    Done,
}

impl Work<'_> {
    /// Ask for the status with `look` until the operation is done. The deadline is three times the estimate, and at
    /// least an hour.
    pub(super) fn wait(
        &self,
        what: &'static str,
        mut look: impl FnMut() -> Result<DriveStatus, Fault>,
    ) -> Result<(), Fault> {
        let deadline = LEAST.max(self.estimate * 3);
        let (mut waited, mut moved, mut last) = (Duration::ZERO, Duration::ZERO, None);
        loop {
            let progress = match look()? {
                DriveStatus::Done => return Ok(()),
                DriveStatus::Running(progress) => progress,
            };
            if progress != last {
                (last, moved) = (progress, waited);
            }
            if waited >= deadline && waited - moved >= STALL {
                let (hours, done) = (waited.as_secs() / 3600, u32::from(last.unwrap_or(0)) * 100 / 65536);
                return Err(fault(what, format!("the drive is stuck: {done} % after {hours} hours")));
            }
            for _ in 0..TICKS_PER_QUESTION {
                (self.report)(last.unwrap_or(0));
                if self.watch.cancelled() {
                    return Err(Fault::Cancelled);
                }
                self.drive.transport.pause(TICK);
                waited += TICK;
            }
        }
    }
}

/// A fault of an operation, in words.
pub(super) fn fault(what: &'static str, words: impl Into<String>) -> Fault {
    Fault::Command { what, source: io::Error::other(words.into()) }
}
