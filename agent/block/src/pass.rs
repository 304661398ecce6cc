//! A pass over a whole disk in chunks, several in flight, with regular calls of the watcher. The size of the chunks
//! follows the disk's speed, and the pass rests while the drive is too hot.

use crate::fault::Fault;
use crate::method::Method;
use crate::progress::{Meter, Phase, Progress, Watch, eta};
use crate::target::Target;
use crate::temperature::must_rest;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the watcher is called.
const TICK: Duration = Duration::from_millis(250);

/// How often the temperature is read: some drives do no other work while they answer.
const LOOK: Duration = Duration::from_secs(5);
/// What one chunk may take and no more: with a few in flight, a pass stops well within two seconds of a cancellation.
const SLOW: Duration = Duration::from_millis(200);
/// What one chunk takes when a larger one may be tried.
const FAST: Duration = Duration::from_millis(20);
/// The least chunk, in bytes: no smaller than the largest logical block of Linux.
const LEAST: u64 = 64 * 1024;

/// A pass over `total` bytes.
pub(crate) struct Pass<'a> {
    pub(crate) phase: Phase,
    pub(crate) method: Option<Method>,
    pub(crate) total: u64,
    pub(crate) chunk: u64,
    pub(crate) target: &'a dyn Target,
    pub(crate) watch: &'a dyn Watch,
}

/// How a pass ended.
pub(crate) struct Passed {
    /// Bytes done.
    pub(crate) done: u64,
    /// The fault of the lowest offset that was seen, if any.
    pub(crate) result: Result<(), Fault>,
}

/// What the lanes share.
struct Shared {
    next: AtomicU64,
    end: u64,
    chunk: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    resting: AtomicBool,
    running: Mutex<(usize, Option<(u64, Fault)>)>,
    ended: Condvar,
}

impl<'a> Pass<'a> {
    /// A pass over all of a disk that erases it.
    pub(crate) fn erasing(method: Method, target: &'a dyn Target, chunk: u64, watch: &'a dyn Watch) -> Self {
        Pass { phase: Phase::Erasing, method: Some(method), total: target.size(), chunk, target, watch }
    }

    /// Run, one worker to a lane: it is given `(offset, length, count)`, does that chunk, and calls `count` for bytes as
    /// they are done. A worker ends the whole pass early by `Break` or a fault.
    pub(crate) fn run<W>(&self, workers: impl IntoIterator<Item = W>) -> Passed
    where
        W: FnMut(u64, u64, &mut dyn FnMut(u64)) -> Result<ControlFlow<()>, Fault> + Send,
    {
        self.part(0..self.total, &mut Meter::default(), workers)
    }

    /// The same for a part of the whole: what is below it counts as done.
    pub(crate) fn part<W>(
        &self,
        part: Range<u64>,
        meter: &mut Meter,
        workers: impl IntoIterator<Item = W>,
    ) -> Passed
    where
        W: FnMut(u64, u64, &mut dyn FnMut(u64)) -> Result<ControlFlow<()>, Fault> + Send,
    {
        let workers: Vec<W> = workers.into_iter().collect();
        let shared = Shared {
            next: AtomicU64::new(part.start),
            chunk: AtomicU64::new(self.least()),
            done: AtomicU64::new(part.start),
            end: part.end,
            stop: AtomicBool::new(false),
            resting: AtomicBool::new(false),
            running: Mutex::new((workers.len(), None)),
            ended: Condvar::new(),
        };
        if self.paced() {
            self.look(&shared);
        }
        let mut cancelled = false;
        std::thread::scope(|scope| {
            for worker in workers {
                let shared = &shared;
                scope.spawn(move || self.work(shared, worker));
            }
            cancelled = self.attend(&shared, meter);
        });
        let done = shared.done.load(Ordering::Acquire);
        if done == self.total {
            self.report(done, &mut Meter::default());
        }
        let fault = shared.running.into_inner().unwrap_or_else(PoisonError::into_inner).1;
        let result = match fault {
            Some((_, fault)) => Err(fault),
            None if cancelled && done < part.end => Err(Fault::Cancelled),
            None => Ok(()),
        };
        Passed { done, result }
    }

    /// One lane: chunk after chunk until the end of the part, a fault or a cancellation.
    fn work<W>(&self, shared: &Shared, mut worker: W)
    where
        W: FnMut(u64, u64, &mut dyn FnMut(u64)) -> Result<ControlFlow<()>, Fault>,
    {
        // Counts the lane as ended even if the worker panics: otherwise the watcher would wait without limit.
        let _leave = Leave(shared);
        while !shared.stop.load(Ordering::Acquire) {
            if shared.resting.load(Ordering::Acquire) {
                std::thread::park_timeout(TICK / 5);
                continue;
            }
            let chunk = shared.chunk.load(Ordering::Relaxed);
            let offset = shared.next.fetch_add(chunk, Ordering::Relaxed);
            if offset >= shared.end {
                return;
            }
            let length = chunk.min(shared.end - offset);
            let begun = Instant::now();
            let mut count = |bytes| {
                shared.done.fetch_add(bytes, Ordering::AcqRel);
            };
            match worker(offset, length, &mut count) {
                Ok(ControlFlow::Continue(())) => {
                    let next = pace(chunk, begun.elapsed(), self.least(), self.chunk);
                    shared.chunk.store(next, Ordering::Relaxed);
                }
                Ok(ControlFlow::Break(())) => shared.stop.store(true, Ordering::Release),
                Err(fault) => {
                    shared.stop.store(true, Ordering::Release);
                    let mut running = shared.running.lock().unwrap_or_else(PoisonError::into_inner);
                    if running.1.as_ref().is_none_or(|&(first, _)| offset < first) {
                        running.1 = Some((offset, fault));
                    }
                }
            }
        }
    }

    /// Call the watcher until all lanes have ended. Returns whether it cancelled.
    fn attend(&self, shared: &Shared, meter: &mut Meter) -> bool {
        let mut cancelled = false;
        let mut looked = Instant::now();
        loop {
            if self.paced() && looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.look(shared);
            }
            self.report(shared.done.load(Ordering::Acquire), meter);
            if !cancelled && self.watch.cancelled() {
                cancelled = true;
                shared.stop.store(true, Ordering::Release);
            }
            let running = shared.running.lock().unwrap_or_else(PoisonError::into_inner);
            if running.0 == 0 {
                return cancelled;
            }
            let waited = shared.ended.wait_timeout_while(running, TICK, |running| running.0 > 0);
            if waited.unwrap_or_else(PoisonError::into_inner).0.0 == 0 {
                return cancelled;
            }
        }
    }

    /// Read the temperature, and rest or go on.
    fn look(&self, shared: &Shared) {
        let temperature = self.target.temperature();
        let before = shared.resting.load(Ordering::Acquire);
        let resting = must_rest(before, temperature);
        shared.resting.store(resting, Ordering::Release);
        if resting || before {
            self.watch.resting(temperature.filter(|_| resting));
        }
    }

    /// Whether the work is bytes that this machine moves, in chunks of any size.
    fn paced(&self) -> bool {
        let by_us =
            matches!(self.method, Some(Method::Overwrite | Method::OverwriteWith(_) | Method::ZeroOut));
        by_us || self.phase == Phase::Verifying
    }

    fn least(&self) -> u64 {
        if self.paced() { LEAST.min(self.chunk) } else { self.chunk }
    }

    fn report(&self, done: u64, meter: &mut Meter) {
        let rate = meter.rate(Instant::now(), done);
        let eta = eta(done, self.total, rate);
        let (phase, method, total) = (self.phase, self.method, self.total);
        self.watch.progress(Progress { phase, method, done, total, rate, eta });
    }
}

/// The next chunk after one that took this long.
fn pace(chunk: u64, took: Duration, least: u64, most: u64) -> u64 {
    if took > SLOW {
        (chunk / 2).max(least)
    } else if took < FAST {
        (chunk * 2).min(most)
    } else {
        chunk
    }
}

struct Leave<'a>(&'a Shared);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner).0 -= 1;
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeDisk;

    #[test]
    fn chunks_follow_the_speed_of_the_disk_between_their_bounds() {
        let next = |chunk: u64, millis: u64| {
            pace(chunk << 10, Duration::from_millis(millis), 64 << 10, 4 << 20) >> 10
        };
        assert_eq!(next(1024, 201), 512, "slow");
        assert_eq!(next(64, 5000), 64, "never less");
        assert_eq!([next(1024, 200), next(1024, 20)], [1024; 2]);
        assert_eq!(next(1024, 19), 2048, "fast");
        assert_eq!(next(4096, 1), 4096, "never more");
    }

    /// Cancels as soon as everything is done, and not before.
    struct TooLate(AtomicBool);

    impl Watch for TooLate {
        fn progress(&self, _: Progress) {}
        fn cancelled(&self) -> bool {
            while !self.0.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            true
        }
    }

    #[test]
    fn a_cancellation_that_comes_when_all_is_done_undoes_nothing() {
        let (disk, watch) = (FakeDisk::new(vec![0; 4096], 512, Vec::new()), TooLate(AtomicBool::new(false)));
        let lane = |_: u64, length: u64, count: &mut dyn FnMut(u64)| {
            count(length);
            watch.0.store(true, Ordering::Release);
            Ok(ControlFlow::Continue(()))
        };
        let passed = Pass::erasing(Method::NvmeFormat, &disk, 4096, &watch).run([lane]);
        assert!(passed.result.is_ok() && passed.done == 4096, "{:?}", passed.result);
    }
}
