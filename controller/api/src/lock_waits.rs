//! How many requests wait for locked nodes, and how long.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a request waits in all, as in Ironic (`[conductor] node_locked_retry_attempts`, 3, once a second).
pub const LONGEST: Duration = Duration::from_secs(3);
/// How many requests wait at a time, at all listeners of the controller: each holds a connection.
const MOST: usize = 64;

/// The places of requests that wait for locked nodes; clones share them.
#[derive(Debug, Clone)]
pub struct LockWaits(Arc<Semaphore>);

impl Default for LockWaits {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}

impl LockWaits {
    /// A place, until it is dropped; `None` where all are taken.
    pub(crate) fn begin(&self) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_owned().ok()
    }
}
