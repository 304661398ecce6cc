//! Erasing a disk for the generic manager: what a provider can do, and doing it.

use super::Method;
use agent_protocol::inventory::Disk;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// `erase_capabilities`: can you erase this disk, and how?
#[derive(Debug, Clone, Copy)]
pub struct AskErase;

impl Method for AskErase {
    const NAME: &'static str = "erase_capabilities";
    const DEADLINE: Option<Duration> = Some(Duration::from_secs(10));
    type Params = AskEraseParams;
    type Answer = EraseCapabilities;
}

/// Which disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskEraseParams {
    /// As in the inventory.
    pub disk: Disk,
}

/// What a manager can do for a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EraseCapabilities {
    /// Ways to erase it, the best first; `null` declines the disk, and the generic manager erases it.
    pub methods: Option<Vec<EraseMethod>>,
    /// Whether other disks may be erased at the same time.
    #[serde(default)]
    pub parallel: bool,
}

/// A way to erase a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EraseMethod {
    /// Its name: a word of letters, digits and `-`.
    pub method: String,
    /// How thorough it is (NIST SP 800-88).
    pub level: EraseLevel,
    /// What the disk reads afterwards. The agent looks.
    pub expected: Expected,
    /// Whether it stops when cancelled.
    #[serde(default)]
    pub abortable: bool,
    /// About how long it takes, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_duration_s: Option<u64>,
}

/// Levels of NIST SP 800-88.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EraseLevel {
    /// Against the ordinary ways of reading a disk.
    Clear,
    /// Against a laboratory.
    Purge,
}

/// What a method leaves on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expected {
    /// Every byte is zero.
    Zeroes,
    /// Anything but what was there.
    Changed,
}

/// `erase`: erase this disk with one of the methods that the manager offered.
#[derive(Debug, Clone, Copy)]
pub struct Erase;

impl Method for Erase {
    const NAME: &'static str = "erase";
    const DEADLINE: Option<Duration> = None;
    type Params = EraseParams;
    type Answer = EraseAnswer;
}

/// The disk and the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EraseParams {
    /// As in the inventory.
    pub disk: Disk,
    /// One of [`EraseCapabilities::methods`].
    pub method: String,
}

/// Answer to `erase` when the disk was erased.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EraseAnswer {
    /// What the manager did.
    pub record: ProviderRecord,
}

/// What the manager did to a disk. The agent reads the disk back and writes the record of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderRecord {
    /// The way it was done.
    pub method: String,
    /// Bytes that were covered.
    pub bytes_erased: u64,
    /// Anything else worth keeping.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub detail: Map<String, Value>,
}
