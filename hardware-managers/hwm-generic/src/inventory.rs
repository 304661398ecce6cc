//! What the kernel reports of the machine beyond ironic-python-agent's inventory.

use crate::{bios, bmc, efi, firmware, pci, tpm};
use block::Disk;
use hwm_sdk::protocol::{FirmwareComponent, InventoryPatch};
use serde_json::{Map, json};
use std::path::Path;

/// Everything, by sysfs at `sys`. What is not there is left out.
pub fn patch(sys: &Path, disks: &[Disk]) -> InventoryPatch {
    let settings = bios::drivers(sys);
    let bmc = bmc::bmc(sys);
    let mut versions = firmware::components(sys, disks);
    versions.extend(bmc.iter().filter_map(|bmc| Some(("bmc".to_owned(), bmc.firmware_version.clone()?))));
    let component = |(component, current_version)| FirmwareComponent { component, current_version };
    let mut extra = Map::new();
    for (name, found) in [
        ("efi", json!(efi::efi(sys))),
        ("bmc", json!(bmc)),
        ("tpm", json!(tpm::tpms(sys))),
        ("pci_devices", json!(pci::devices(sys))),
    ] {
        if !found.is_null() && found.as_array().is_none_or(|list| !list.is_empty()) {
            extra.insert(name.to_owned(), found);
        }
    }
    InventoryPatch {
        bios_settings: settings.iter().flat_map(|driver| &driver.attributes).map(bios::setting).collect(),
        firmware: versions.into_iter().map(component).collect(),
        raid: None,
        extra,
    }
}
