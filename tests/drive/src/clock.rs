//! Time, as a drive has it.

use std::time::{Duration, Instant};

/// The clock of a drive.
pub trait Clock: Send {
    /// Since any moment that stays the same.
    fn now(&self) -> Duration;
    /// Let time pass.
    fn sleep(&self, duration: Duration);
}

/// The time of this machine.
#[derive(Debug)]
pub struct Real(Instant);

impl Default for Real {
    fn default() -> Self {
        Real(Instant::now())
    }
}

impl Clock for Real {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}
