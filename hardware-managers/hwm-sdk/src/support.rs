//! How well a manager supports a machine.

use serde::{Deserialize, Serialize};

/// How well a manager supports a machine. Larger wins when two managers offer one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// Not this machine.
    None = 0,
    /// Works everywhere.
    Generic = 1,
    /// Made for this hardware, by Anneal.
    Mainline = 2,
    /// Made for this hardware, by its vendor or operator.
    ServiceProvider = 3,
}
