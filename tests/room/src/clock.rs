//! Time of the world: tokio's paused clock, so that hours pass in milliseconds.

use model::Timestamp;
use store::Clock;
use tokio::time::Instant;

/// Where the world begins, in microseconds since 1970.
const EPOCH: i64 = 1_800_000_000_000_000;

/// The clock of a simulated world.
pub struct SimClock(Instant);

impl SimClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since the world began, for logs.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp(EPOCH + i64::try_from(self.0.elapsed().as_micros()).unwrap_or(i64::MAX))
    }
}
