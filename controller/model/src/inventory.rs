//! The inventory of a node: what an inspection found.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the last inspection of a node found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// The hardware, in ironic-python-agent's shape: `interfaces`, `cpu`, `memory`, `disks` …
    pub inventory: Value,
    /// What else was told of it: `root_disk`, `boot_interface`, data of further collectors.
    pub plugin_data: Value,
    /// When it was stored.
    pub at: Timestamp,
    /// Who found it.
    pub source: InventorySource,
}

/// Who found an inventory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InventorySource {
    /// The agent, in the ramdisk.
    Agent,
    /// The BMC was asked.
    Bmc,
}
