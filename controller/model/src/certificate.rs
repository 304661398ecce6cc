//! Erasure certificates as they are kept. What stands in one only the crate `certificate` knows.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// One certificate. It is never changed, and outlives its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// SHA-256 of what is signed, 64 hexadecimal digits: its name wherever it is kept.
    pub id: String,
    /// Whose disks they were.
    pub node: Uuid,
    /// Which of the node's certificates it is, from 1, without gaps.
    pub number: u64,
    /// When it was stored.
    pub at: Timestamp,
    /// What it amounts to: `erased` …
    pub finding: String,
    /// Id of the command that it is about.
    pub command_id: String,
    /// The file: what is signed, and the signature.
    pub file: String,
}
