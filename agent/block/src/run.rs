//! A pass over a whole disk in chunks, several in flight, watched once in a while.

use crate::fault::Fault;
use crate::method::Method;
use crate::progress::{Meter, Phase, Progress, Watch, eta};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the watcher is told and asked.
const TICK: Duration = Duration::from_millis(250);

/// A pass over `total` bytes.
pub(crate) struct Pass<'a> {
    pub(crate) phase: Phase,
    pub(crate) method: Option<Method>,
    pub(crate) total: u64,
    pub(crate) chunk: u64,
    pub(crate) lanes: usize,
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
    done: AtomicU64,
    stop: AtomicBool,
    running: Mutex<(usize, Option<(u64, Fault)>)>,
    ended: Condvar,
}

impl Pass<'_> {
    /// Run: `lane()` makes the worker of one lane, which is given `(offset, length, count)`, does that chunk,
    /// and calls `count` for bytes as they are done. A worker ends the whole pass early by `Break` or a fault.
    pub(crate) fn run<W>(&self, lane: impl Fn() -> W) -> Passed
    where
        W: FnMut(u64, u64, &mut dyn FnMut(u64)) -> Result<ControlFlow<()>, Fault> + Send,
    {
        self.part(0..self.total, &mut Meter::default(), lane)
    }

    /// The same for a part of the whole: what is below it counts as done.
    pub(crate) fn part<W>(&self, part: Range<u64>, meter: &mut Meter, lane: impl Fn() -> W) -> Passed
    where
        W: FnMut(u64, u64, &mut dyn FnMut(u64)) -> Result<ControlFlow<()>, Fault> + Send,
    {
        let shared = Shared {
            next: AtomicU64::new(part.start),
            done: AtomicU64::new(part.start),
            end: part.end,
            stop: AtomicBool::new(false),
            running: Mutex::new((self.lanes, None)),
            ended: Condvar::new(),
        };
        let mut cancelled = false;
        std::thread::scope(|scope| {
            for _ in 0..self.lanes {
                let (shared, worker) = (&shared, lane());
                scope.spawn(move || self.work(shared, worker));
            }
            cancelled = self.attend(&shared, meter);
        });
        let done = shared.done.load(Ordering::Acquire);
        if done == self.total {
            self.tell(done, &mut Meter::default());
        }
        let fault = shared.running.into_inner().unwrap_or_else(PoisonError::into_inner).1;
        let result = match fault {
            Some((_, fault)) => Err(fault),
            None if cancelled && done < part.end => Err(Fault::Cancelled),
            None => Ok(()),
        };
        Passed { done, result }
    }

    /// One lane: chunk after chunk until there is none, or somebody says stop.
    fn work<W>(&self, shared: &Shared, mut worker: W)
    where
        W: FnMut(u64, u64, &mut dyn FnMut(u64)) -> Result<ControlFlow<()>, Fault>,
    {
        // Ends the lane in the books even if the worker panics: the watcher must not wait for ever.
        let _leave = Leave(shared);
        while !shared.stop.load(Ordering::Acquire) {
            let offset = shared.next.fetch_add(self.chunk, Ordering::Relaxed);
            if offset >= shared.end {
                return;
            }
            let length = self.chunk.min(shared.end - offset);
            let mut count = |bytes| {
                shared.done.fetch_add(bytes, Ordering::AcqRel);
            };
            match worker(offset, length, &mut count) {
                Ok(ControlFlow::Continue(())) => {}
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

    /// Tell and ask the watcher until all lanes have ended. Whether it said stop.
    fn attend(&self, shared: &Shared, meter: &mut Meter) -> bool {
        let mut cancelled = false;
        loop {
            self.tell(shared.done.load(Ordering::Acquire), meter);
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

    fn tell(&self, done: u64, meter: &mut Meter) {
        let rate = meter.rate(Instant::now(), done);
        let eta = eta(done, self.total, rate);
        let (phase, method, total) = (self.phase, self.method, self.total);
        self.watch.progress(Progress { phase, method, done, total, rate, eta });
    }
}

struct Leave<'a>(&'a Shared);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner).0 -= 1;
        self.0.ended.notify_all();
    }
}
