//! What the process is asked, and what it answers: JSON on both ways.

use crate::signature::{PartitionType, Signature};
use serde::{Deserialize, Serialize};

/// What is to be looked at, in addition to the device itself.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    /// Bytes of the device.
    pub(super) size: u64,
    /// Its logical sector size in bytes.
    pub(super) sector: u32,
    /// Ranges `(start, size)` in bytes of partitions that the kernel knows.
    pub(super) partitions: Vec<(u64, u64)>,
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Ranges that can carry signatures: the device, then partitions (kernel's and table's) inside it.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// Signatures in these ranges, by offset.
    pub(crate) signatures: Vec<Signature>,
    /// What the table on the device says its partitions are for.
    pub(crate) partition_types: Vec<PartitionType>,
}

/// What the child writes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Found(Found),
    Failed(String),
}
