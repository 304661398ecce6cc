//! The clock behind a trait, so that a simulation can own time.

use model::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// Source of the time.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX))
    }
}
