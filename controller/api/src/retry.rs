//! Trying a write again that conflicted with another one. The one place that decides how often, and how long to wait.

use std::time::Duration;

/// Pauses before another attempt, in milliseconds. A conductor holds a node between two reads of the API for moments
/// only.
const PAUSES_MS: [u64; 5] = [5, 20, 60, 150, 300];

/// The attempts of one write.
pub struct Retry(std::array::IntoIter<u64, 5>);

impl Retry {
    /// Before the first attempt.
    pub fn new() -> Self {
        Self(PAUSES_MS.into_iter())
    }

    /// Wait before the next attempt; false when the write has been tried often enough.
    pub async fn again(&mut self) -> bool {
        let Some(pause) = self.0.next() else { return false };
        tokio::time::sleep(Duration::from_millis(pause)).await;
        true
    }
}
