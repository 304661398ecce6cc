//! Live progress of a command: of each of its disks, or of the whole.

use serde::{Deserialize, Serialize};

/// How far a running command is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Percent of the whole, 0 to 100, where no disks report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// What is being done, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// One entry for every disk the command works on.
    #[serde(default)]
    pub disks: Vec<DiskProgress>,
}

/// How far one disk is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskProgress {
    /// Kernel name, `/dev/nvme0n1`.
    pub device: String,
    /// Serial number, when the disk has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// What is being done to the disk now.
    pub phase: Phase,
    /// Method in use, for example `overwrite-zeroes` or `nvme-format-user-data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Bytes done in this phase.
    pub bytes_done: u64,
    /// Bytes to do in this phase; 0 while unknown. An image is counted as its mirror sends it.
    pub bytes_total: u64,
    /// Bytes per second over the last few seconds; 0 when nothing moved.
    pub rate: u64,
    /// Seconds until this phase ends at the present rate; absent while unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta: Option<u64>,
    /// Unix time in seconds since when `bytes_done` stands still, once that has lasted longer than the step takes for
    /// normal; absent while it moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_since: Option<f64>,
}

/// Phase of the work on one disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Waiting for its turn.
    Pending,
    /// Content recorded before anything is written.
    Sampling,
    /// Being erased.
    Erasing,
    /// An image arrives and is written to it.
    Writing,
    /// Being read back.
    Verifying,
    /// Done; the record says how it ended.
    Done,
}
