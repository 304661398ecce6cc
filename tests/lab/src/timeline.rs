//! What happened when, in seconds since the timeline began.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Events with their times; clones share the same list.
#[derive(Debug, Clone)]
pub struct Timeline {
    zero: Instant,
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
        Self { zero: Instant::now(), events: Arc::default() }
    }
}

impl Timeline {
    /// Seconds since the beginning.
    #[must_use]
    pub fn now(&self) -> f64 {
        self.zero.elapsed().as_secs_f64()
    }

    /// Notes that something happens now.
    pub fn note(&self, subject: &str, what: &str) {
        let event = Event { at: self.now(), subject: subject.to_owned(), what: what.to_owned() };
        tracing::info!(at = event.at, subject, what);
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// All events so far, in order.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When `what` first happened to `subject`.
    #[must_use]
    pub fn first(&self, subject: &str, what: &str) -> Option<f64> {
        self.events().iter().find(|e| e.subject == subject && e.what == what).map(|e| e.at)
    }
}
