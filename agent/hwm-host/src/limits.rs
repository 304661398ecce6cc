//! How long a manager may take, and how often it may fail.

use hwm_sdk::protocol::{AskErase, Detect, GRACE, Hello, Init, InventoryCall, Method, Steps};
use std::time::Duration;

/// How many times the protocol's deadline a start may take: of all managers at once, on a machine that boots, and that the
/// manager's author did not measure. Not what is asked later: a controller waits for the answer of all.
const PATIENCE: u32 = 3;

/// Bounds of one manager. The default is PROTOCOL.md's, with patience at the start; tests have less time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `hello`, from the start of the process.
    pub hello: Duration,
    /// `detect`.
    pub detect: Duration,
    /// `init`.
    pub init: Duration,
    /// `inventory`.
    pub inventory: Duration,
    /// `steps`.
    pub steps: Duration,
    /// `erase_capabilities`.
    pub erase_capabilities: Duration,
    /// From a cancel to the answer, and from `shutdown` to the end.
    pub grace: Duration,
    /// Starts after the first, in the life of the agent.
    pub restarts: u32,
    /// Wait before the first of these; each further one waits twice as long.
    pub backoff: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let of = |deadline: Option<Duration>| deadline.unwrap_or(GRACE);
        Self {
            hello: of(Hello::DEADLINE) * PATIENCE,
            detect: of(Detect::DEADLINE) * PATIENCE,
            init: of(Init::DEADLINE),
            inventory: of(InventoryCall::DEADLINE),
            steps: of(Steps::DEADLINE),
            erase_capabilities: of(AskErase::DEADLINE),
            grace: GRACE,
            restarts: 3,
            backoff: Duration::from_secs(1),
        }
    }
}
