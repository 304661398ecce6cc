//! What a manager adds to the inventory.

use super::{Empty, Method};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// `inventory`: what do you know that the agent cannot see?
#[derive(Debug, Clone, Copy)]
pub struct InventoryCall;

impl Method for InventoryCall {
    const NAME: &'static str = "inventory";
    const DEADLINE: Option<Duration> = Some(Duration::from_secs(30));
    type Params = Empty;
    type Answer = PatchAnswer;
}

/// Answer to `inventory`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PatchAnswer {
    /// Added to the inventory under the manager's name.
    pub patch: InventoryPatch,
}

/// What a manager knows of the hardware.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InventoryPatch {
    /// BIOS settings as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bios_settings: Vec<BiosSetting>,
    /// Firmware of components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub firmware: Vec<FirmwareComponent>,
    /// RAID as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raid: Option<Raid>,
    /// Anything else.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// A BIOS setting, in the words of Ironic's BIOS API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BiosSetting {
    /// Its name.
    pub name: String,
    /// Its value as text; `null` where it must not be reported (a password).
    pub value: Option<String>,
    /// `Enumeration`, `String`, `Integer`, `Boolean` or `Password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute_type: Option<String>,
    /// Values of an enumeration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowable_values: Option<Vec<String>>,
    /// Smallest integer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_bound: Option<i64>,
    /// Largest integer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper_bound: Option<i64>,
    /// Shortest text, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// Longest text, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// A change needs a reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_required: Option<bool>,
}

/// Firmware of a component.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirmwareComponent {
    /// Its name: `bios`, `bmc`, `nic:0000:3b:00.0`, `raid:0`.
    pub component: String,
    /// Version that runs.
    pub current_version: String,
}

/// RAID controllers with their disks and volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raid {
    /// Controllers.
    pub controllers: Vec<RaidController>,
    /// Disks behind them.
    pub physical_disks: Vec<PhysicalDisk>,
    /// Volumes made of these.
    pub logical_disks: Vec<LogicalDisk>,
}

/// A RAID controller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RaidController {
    /// Its id in this topology.
    pub id: String,
    /// Model.
    pub model: String,
    /// Firmware version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware_version: Option<String>,
    /// PCI address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci_address: Option<String>,
}

/// A disk behind a RAID controller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhysicalDisk {
    /// Its id in this topology: `252:0`.
    pub id: String,
    /// Id of its controller.
    pub controller: String,
    /// Bytes.
    pub size_bytes: u64,
    /// As the controller calls it: `online`, `ready`, `failed`, `hotspare` …
    pub state: String,
    /// `hdd`, `ssd`, `nvme`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<String>,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
}

/// A volume of a RAID controller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogicalDisk {
    /// Its id in this topology.
    pub id: String,
    /// Id of its controller.
    pub controller: String,
    /// `0`, `1`, `5`, `6`, `1+0`, `5+0`, `6+0`, `JBOD`: Ironic's names.
    pub raid_level: String,
    /// Bytes that can be used.
    pub size_bytes: u64,
    /// Ids of its disks.
    pub physical_disks: Vec<String>,
    /// As the controller calls it: `optimal`, `degraded` …
    pub state: String,
    /// The disk it is in the inventory: `/dev/sda`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}
