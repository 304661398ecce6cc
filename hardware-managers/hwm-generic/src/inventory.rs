//! What the kernel tells of the machine beyond ironic-python-agent's inventory.

use crate::{bios, efi, firmware};
use block::Disk;
use hwm_sdk::protocol::{FirmwareComponent, InventoryPatch};
use serde_json::{Map, Value};
use std::path::Path;

/// Everything, by sysfs at `sys`. What is not there is left out.
pub fn patch(sys: &Path, disks: &[Disk]) -> InventoryPatch {
    let drivers = bios::drivers(sys);
    let mut extra = Map::new();
    let mut add =
        |name: &str, value: Option<Value>| extra.extend(value.map(|value| (name.to_owned(), value)));
    add("efi", efi::efi(sys).and_then(|efi| serde_json::to_value(efi).ok()));
    InventoryPatch {
        bios_settings: drivers.iter().flat_map(|driver| &driver.attributes).map(bios::setting).collect(),
        firmware: firmware::components(sys, disks)
            .into_iter()
            .map(|(component, current_version)| FirmwareComponent { component, current_version })
            .collect(),
        raid: None,
        extra,
    }
}
