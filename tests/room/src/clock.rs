//! Time of the world: tokio's paused clock, so that hours pass in milliseconds. It can be set, as a machine's clock is.

use model::Timestamp;
use std::sync::atomic::{AtomicI64, Ordering};
use store::Clock;
use tokio::time::Instant;

/// Where the world begins, in microseconds since 1970.
const EPOCH: i64 = 1_800_000_000_000_000;

/// The clock of a simulated world.
pub struct SimClock {
    began: Instant,
    /// By how much the machine's clock was set forward since.
    set: AtomicI64,
    /// The part of it that is followed.
    followed: AtomicI64,
}

impl SimClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { began: Instant::now(), set: AtomicI64::new(0), followed: AtomicI64::new(0) }
    }

    /// The clock of another machine in the same world, `ahead` by this many microseconds.
    pub fn another(&self, ahead: i64) -> Self {
        Self { began: self.began, set: AtomicI64::new(ahead), followed: AtomicI64::new(ahead) }
    }

    /// Seconds since the world began, for logs.
    pub fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// As if the machine's clock had not been set since it was followed last.
    pub fn forget_jump(&self) {
        self.set.store(self.followed.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Set the machine's clock forward by this many seconds, or back by a negative number.
    pub fn set_forward(&self, seconds: i64) {
        self.set.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        Timestamp(EPOCH + elapsed + self.followed.load(Ordering::Relaxed))
    }

    fn jump(&self) -> i64 {
        self.set.load(Ordering::Relaxed) - self.followed.load(Ordering::Relaxed)
    }

    fn follow(&self, by: i64) {
        self.followed.fetch_add(by, Ordering::Relaxed);
    }
}
