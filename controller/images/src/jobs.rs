//! Work that takes long, on threads of its own: each at most once at a time, and only as long as a run asks for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Jobs that run at once; others wait for their turn.
const AT_ONCE: usize = 4;
/// Failures that are remembered, so that all who wait for a job hear of it.
const REMEMBERED: usize = 256;

/// One job, as it and those who wait see it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) received: AtomicU64,
    /// 0 where it is not known.
    pub(crate) total: AtomicU64,
    asked: Mutex<Instant>,
    patience: Duration,
    end: Mutex<Option<Result<(), String>>>,
}

/// Why a job ended before its end.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// No run asks for it any more.
    Abandoned,
    /// In one sentence.
    Failed(String),
}

impl Job {
    /// Whether no run has asked for it for a while.
    pub(crate) fn is_abandoned(&self) -> bool {
        lock(&self.asked).elapsed() > self.patience
    }

    /// `12 of 410 MB`; empty before anything has come.
    pub(crate) fn progress(&self) -> String {
        let mb = |bytes: u64| bytes / 1_000_000;
        match (self.received.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed)) {
            (0, 0) => String::new(),
            (received, 0) => format!(": {} MB", mb(received)),
            (received, total) => format!(": {} of {} MB", mb(received), mb(total)),
        }
    }
}

/// How a job stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum JobStatus {
    /// It has succeeded; asked again it begins again.
    Done,
    /// `12 of 410 MB`, or why it has not begun.
    Running(String),
    /// Why it failed.
    Failed(String),
}

/// The jobs by name.
#[derive(Debug)]
pub(crate) struct Jobs {
    jobs: Mutex<HashMap<String, Arc<Job>>>,
    patience: Duration,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Jobs {
    /// None. A job that no run has asked for during this time stops.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { jobs: Mutex::default(), patience }
    }

    /// How the job of this name stands; begins it where there is none.
    pub(crate) fn status<W>(self: &Arc<Self>, name: &str, work: W) -> JobStatus
    where
        W: FnOnce(&Job) -> Result<(), Stopped> + Send + 'static,
    {
        let mut jobs = lock(&self.jobs);
        if let Some(job) = jobs.get(name) {
            *lock(&job.asked) = Instant::now();
            let end = lock(&job.end).clone();
            return match end {
                None => JobStatus::Running(job.progress()),
                Some(Err(text)) => JobStatus::Failed(text),
                Some(Ok(())) => {
                    jobs.remove(name);
                    JobStatus::Done
                }
            };
        }
        if jobs.values().filter(|job| lock(&job.end).is_none()).count() >= AT_ONCE {
            return JobStatus::Running(", after other images".to_owned());
        }
        if jobs.len() >= REMEMBERED {
            jobs.retain(|_, job| lock(&job.end).is_none());
        }
        let job = Arc::new(Job {
            received: AtomicU64::new(0),
            total: AtomicU64::new(0),
            asked: Mutex::new(Instant::now()),
            patience: self.patience,
            end: Mutex::default(),
        });
        jobs.insert(name.to_owned(), job.clone());
        drop(jobs);
        let (all, name) = (self.clone(), name.to_owned());
        let thread = name.clone();
        let run = move || {
            // Its end is noted even if it panics: its callers get an answer.
            let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&job)));
            match worked {
                Ok(Ok(())) => *lock(&job.end) = Some(Ok(())),
                Ok(Err(Stopped::Failed(text))) => *lock(&job.end) = Some(Err(text)),
                Ok(Err(Stopped::Abandoned)) => drop(lock(&all.jobs).remove(&name)),
                Err(_) => *lock(&job.end) = Some(Err("internal: fetching the image panicked".to_owned())),
            }
        };
        match std::thread::Builder::new().name("image".to_owned()).spawn(run) {
            Ok(_) => JobStatus::Running(String::new()),
            Err(error) => {
                lock(&self.jobs).remove(&thread);
                JobStatus::Failed(format!("no thread to fetch the image: {error}"))
            }
        }
    }

    /// Forget failures of jobs with these names, so that they begin again.
    pub(crate) fn forget_failures(&self, of: impl Fn(&str) -> bool) {
        lock(&self.jobs).retain(|name, job| !of(name) || !matches!(*lock(&job.end), Some(Err(_))));
    }
}
