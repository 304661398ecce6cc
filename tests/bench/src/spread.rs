//! How a measurement is spread.

use serde::Serialize;
use std::time::Duration;

/// Median, 95th percentile and largest of some times, in milliseconds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Spread {
    /// How many were measured.
    pub count: usize,
    /// Half of them were at most this.
    pub median_ms: f64,
    /// 95 of 100 were at most this.
    pub p95_ms: f64,
    /// The largest.
    pub max_ms: f64,
}

impl Spread {
    /// Of these times; all zero when there is none.
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        // Nearest rank: the smallest one that `percent` of them do not exceed.
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).max(1);
            times.get(rank - 1).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
        };
        Self { count: times.len(), median_ms: at(50), p95_ms: at(95), max_ms: at(100) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let times = |numbers: &[u64]| numbers.iter().map(|ms| Duration::from_millis(*ms)).collect();
        let spread = Spread::of((1..=100).rev().map(Duration::from_millis).collect());
        assert_eq!((spread.median_ms, spread.p95_ms, spread.max_ms), (50.0, 95.0, 100.0));
        let spread = Spread::of(times(&[7]));
        assert_eq!((spread.count, spread.median_ms, spread.p95_ms, spread.max_ms), (1, 7.0, 7.0, 7.0));
        let spread = Spread::of(times(&[]));
        assert_eq!((spread.count, spread.median_ms, spread.max_ms), (0, 0.0, 0.0));
    }
}
