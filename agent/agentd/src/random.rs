//! Jitter. Not for secrets.

use std::ops::Range;
use std::time::Duration;

/// A random number in [0, 1).
pub fn unit() -> f64 {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0),
        // Without entropy there is no jitter; nothing else depends on it.
        Err(_) => 0.5,
    }
}

/// A random duration within `range`, in seconds.
pub fn seconds(range: Range<f64>) -> Duration {
    Duration::from_secs_f64(range.start + (range.end - range.start) * unit())
}
