//! The only source of randomness: all draws come from here, so that a seed determines the world.

use crate::held;
use fastrand::Rng;
use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;
use uuid::Uuid;

/// The random number generator of one world.
pub struct SimRng(Mutex<Rng>);

impl SimRng {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(Rng::with_seed(seed)))
    }

    /// True with this probability. A probability of 0 draws nothing.
    pub fn chance(&self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// A number in [0, 1).
    pub fn unit(&self) -> f64 {
        held(&self.0).f64()
    }

    /// A whole number of the range.
    pub fn number(&self, range: Range<u32>) -> u32 {
        held(&self.0).u32(range)
    }

    /// A time of the range, in milliseconds.
    pub fn millis(&self, range: Range<u64>) -> Duration {
        Duration::from_millis(held(&self.0).u64(range))
    }

    /// A time of the range, in seconds, to the millisecond.
    pub fn seconds(&self, range: Range<u64>) -> Duration {
        self.millis(range.start * 1000..range.end * 1000)
    }

    /// One of a list that is not empty.
    pub fn pick<'a, T>(&self, list: &'a [T]) -> &'a T {
        let index = held(&self.0).usize(0..list.len());
        &list[index]
    }

    /// An id.
    pub fn uuid(&self) -> Uuid {
        Uuid::from_u128(held(&self.0).u128(..))
    }
}
