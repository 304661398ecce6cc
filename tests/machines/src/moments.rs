//! Random moments, from a seed: the same seed names the same moments.

use std::time::Duration;

/// A source of moments.
#[derive(Debug, Clone)]
pub struct Moments(u64);

impl Moments {
    /// From this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A length of time below `longest`.
    pub fn within(&mut self, longest: Duration) -> Duration {
        // SplitMix64 (Steele, Lea, Flood 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let part = u32::try_from(mixed >> 32).unwrap_or(u32::MAX);
        longest.mul_f64(f64::from(part) / f64::from(u32::MAX))
    }

    /// Waits for a random moment within `longest`.
    pub async fn pass(&mut self, longest: Duration) {
        tokio::time::sleep(self.within(longest)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_its_moments() {
        let some = |seed| {
            let mut moments = Moments::new(seed);
            (0..100).map(|_| moments.within(Duration::from_secs(2))).collect::<Vec<_>>()
        };
        assert_eq!(some(7), some(7));
        assert_ne!(some(7), some(8));
        assert!(some(7).iter().all(|moment| *moment <= Duration::from_secs(2)));
        assert!(some(7).iter().any(|moment| *moment > Duration::from_secs(1)));
        assert!(some(7).iter().any(|moment| *moment < Duration::from_secs(1)));
    }
}
