//! The clock behind a trait, so that a simulation can own time.

use model::Timestamp;
use nix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicI64, Ordering};

/// Source of the time.
pub trait Clock: Send + Sync {
    /// Now. While the machine's clock is set, this goes on as before, until [`Clock::follow`].
    fn now(&self) -> Timestamp;

    /// By how many microseconds the machine's clock was set forward since the last [`Clock::follow`] (negative: back).
    fn jump(&self) -> i64 {
        0
    }

    /// Go on at the time of the machine, `by` microseconds later than before.
    fn follow(&self, _by: i64) {}
}

/// The machine's clock, whose jumps are seen and not followed by themselves: between two of them, durations are those of
/// CLOCK_BOOTTIME, which cannot be set, and which goes on while the machine is suspended.
#[derive(Debug)]
pub struct SystemClock {
    /// Microseconds between CLOCK_BOOTTIME and the time that is shown.
    offset: AtomicI64,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { offset: AtomicI64::new(offset()) }
    }
}

/// How far CLOCK_REALTIME is ahead of CLOCK_BOOTTIME.
fn offset() -> i64 {
    micros(ClockId::CLOCK_REALTIME) - micros(ClockId::CLOCK_BOOTTIME)
}

fn micros(clock: ClockId) -> i64 {
    // Both clocks exist on every Linux.
    clock_gettime(clock).map(|time| time.tv_sec() * 1_000_000 + time.tv_nsec() / 1_000).unwrap_or_default()
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(micros(ClockId::CLOCK_BOOTTIME) + self.offset.load(Ordering::Relaxed))
    }

    fn jump(&self) -> i64 {
        offset() - self.offset.load(Ordering::Relaxed)
    }

    fn follow(&self, by: i64) {
        self.offset.fetch_add(by, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    /// Seconds are enough: the test must not depend on how busy the machine is.
    const SECOND: i64 = 1_000_000;

    #[test]
    fn it_shows_the_time_of_the_machine_and_sees_a_jump() {
        let clock = SystemClock::default();
        let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros();
        assert!((i64::try_from(elapsed).unwrap() - clock.now().0).abs() < 60 * SECOND);
        assert!(clock.jump().abs() < 60 * SECOND);
        // As if the machine's clock had been an hour behind when this one began, and was set then.
        let hour = 3600 * SECOND;
        clock.offset.fetch_sub(hour, Ordering::Relaxed);
        assert!((clock.jump() - hour).abs() < 60 * SECOND, "{}", clock.jump());
        let before = clock.now();
        clock.follow(clock.jump());
        assert!(clock.jump().abs() < 60 * SECOND);
        assert!((clock.now().0 - before.0 - hour).abs() < 60 * SECOND);
    }
}
