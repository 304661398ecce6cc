//! `POST <callback URL>`: what an agent found, sent before its lookup (`/v1/continue_inspection` of Ironic).
//!
//! The shape is ironic-python-agent's. Ironic takes `inventory` out and calls all the rest `plugin_data`.

use crate::inventory::{Disk, Inventory};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Body of the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InspectionReport {
    /// The hardware.
    pub inventory: Inventory,
    /// The disk that an image would go to, when no root device hints choose another: the smallest of at
    /// least 4 GiB, the first by name of several such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_disk: Option<Disk>,
    /// MAC of the NIC that PXE used, as in [`crate::inventory::Boot::pxe_interface`].
    pub boot_interface: Option<String>,
    /// Source of the finding.
    #[serde(default)]
    pub configuration: Configuration,
    /// Error during the collection.
    pub error: Option<String>,
    /// What hardware managers add. Anneal's; Ironic keeps it with the rest of the plugin data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anneal: Option<Discovered>,
    /// What further collectors found: `logs` (tar.gz in base64), `lldp_raw`, `pci_devices` …
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Data of hardware managers that is not in the inventory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Discovered {
    /// By manager, its inventory patch (`hwm_sdk::protocol::InventoryPatch`): `bios_settings`, `firmware`, `raid`, `extra`.
    #[serde(default)]
    pub managers: BTreeMap<String, Value>,
    /// By manager, why it returned nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub problems: BTreeMap<String, String>,
}

/// Collectors and hardware managers that took part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Names of the collectors: `default`, `logs` …
    #[serde(default)]
    pub collectors: Vec<String>,
    /// Hardware managers.
    #[serde(default)]
    pub managers: Vec<Manager>,
}

/// A hardware manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manager {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Answer to it, with status 202.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InspectionAnswer {
    /// The node that the inventory belongs to; the agent names it in its lookup.
    pub uuid: Option<String>,
}
