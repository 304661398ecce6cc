//! What happened when, in seconds since the timeline began.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

/// Events with their times; clones share the same list.
#[derive(Debug, Clone)]
pub struct Timeline {
    zero: Instant,
    zero_by_the_clock: SystemTime,
    events: Arc<Mutex<Vec<Event>>>,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Seconds since the beginning.
    pub at: f64,
    /// Node or part that it concerns.
    pub subject: String,
    /// What happened, for example `power on`.
    pub what: String,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { zero: Instant::now(), zero_by_the_clock: SystemTime::now(), events: Arc::default() }
    }
}

impl Timeline {
    /// Seconds since the beginning.
    #[must_use]
    pub fn now(&self) -> f64 {
        self.zero.elapsed().as_secs_f64()
    }

    /// Where a time by the clock, such as a log's, is on this line; negative before its beginning.
    #[must_use]
    pub fn at(&self, time: SystemTime) -> f64 {
        match time.duration_since(self.zero_by_the_clock) {
            Ok(after) => after.as_secs_f64(),
            Err(before) => -before.duration().as_secs_f64(),
        }
    }

    /// Notes that something happens now.
    pub fn note(&self, subject: &str, what: &str) {
        self.note_at(self.now(), subject, what);
    }

    /// Notes that something happened at `at` seconds.
    pub fn note_at(&self, at: f64, subject: &str, what: &str) {
        let event = Event { at, subject: subject.to_owned(), what: what.to_owned() };
        tracing::info!(at = event.at, subject, what);
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// All events so far, in the order in which they were noted.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When `what` first happened to `subject`.
    #[must_use]
    pub fn first(&self, subject: &str, what: &str) -> Option<f64> {
        self.first_since(f64::NEG_INFINITY, subject, what)
    }

    /// When `what` first happened to `subject` at or after `start`.
    #[must_use]
    pub fn first_since(&self, start: f64, subject: &str, what: &str) -> Option<f64> {
        let events = self.events();
        let same = events.iter().filter(|e| e.at >= start && e.subject == subject && e.what == what);
        same.map(|e| e.at).min_by(f64::total_cmp)
    }
}
