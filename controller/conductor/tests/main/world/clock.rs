//! Virtual time.

use model::Timestamp;
use store::Clock;
use tokio::time::Instant;

/// Tokio's paused clock as the conductor's clock.
pub struct SimClock(pub Instant);

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_000_000_000 + i64::try_from(self.0.elapsed().as_micros()).unwrap())
    }
}
