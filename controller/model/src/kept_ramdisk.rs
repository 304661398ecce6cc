//! The ramdisk that a cleaning left running.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What becomes of the ramdisk that a cleaning left running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptRamdisk {
    /// It has been kept for a deployment since then.
    Since(Timestamp),
    /// The node has been about to be powered off since then.
    PoweringOff(Timestamp),
}
