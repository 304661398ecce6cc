//! Threads that decode parts of a file at the same time.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, available_parallelism};

/// Decoders at the same time at most: each has a window and buffers.
const MOST: usize = 3;

/// How many parts are decoded at the same time on this machine.
pub(crate) fn decoders() -> usize {
    available_parallelism().map_or(1, |cores| cores.get().min(MOST))
}

/// Threads that take jobs in the order in which they are given. When dropped they end after the jobs that were given.
pub(crate) struct Pool<J> {
    jobs: Option<SyncSender<J>>,
    threads: Vec<JoinHandle<()>>,
}

impl<J: Send + 'static> Pool<J> {
    /// So many threads, each with what `worker` makes; `queue` jobs wait for them at most.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn new<W: FnMut(J) + Send + 'static>(
        count: usize,
        queue: usize,
        worker: impl Fn() -> W,
    ) -> io::Result<Self> {
        let (jobs, waiting) = sync_channel(queue);
        let waiting = Arc::new(Mutex::new(waiting));
        let mut pool = Pool { jobs: Some(jobs), threads: Vec::new() };
        for _ in 0..count {
            let (waiting, worker) = (waiting.clone(), worker());
            pool.threads
                .push(Builder::new().name("decoder".to_owned()).spawn(move || work(&waiting, worker))?);
        }
        Ok(pool)
    }

    /// Waits while the queue is full. `false` when none is left.
    pub(crate) fn give(&self, job: J) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok())
    }
}

fn work<J>(waiting: &Mutex<Receiver<J>>, mut worker: impl FnMut(J)) {
    loop {
        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => worker(job),
            Err(_) => return,
        }
    }
}

impl<J> Drop for Pool<J> {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // What a thread that panicked should have decoded is missed by who waits for it.
            let _ = thread.join();
        }
    }
}
