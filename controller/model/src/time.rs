//! Instants as the controller stores them.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Microseconds since 1970-01-01T00:00:00Z. Text forms belong to the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The instant `wait` later.
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX)))
    }

    /// The same instant after the clock was set forward by this many microseconds, or back by a negative number.
    #[must_use]
    pub fn shifted(self, by: i64) -> Self {
        Self(self.0.saturating_add(by))
    }

    /// How long ago `earlier` was; zero when it lies in the future.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}
