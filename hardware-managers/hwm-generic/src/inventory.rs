//! What the kernel reports of the machine beyond ironic-python-agent's inventory.

use crate::{bios, bmc, efi, firmware, missing_firmware, pci, tpm};
use block::{Disk, Roots};
use hwm_sdk::protocol::{FirmwareComponent, InventoryPatch};
use serde_json::{Map, json};

/// Everything that sysfs and the kernel's log report; missing files are left out.
pub fn patch(roots: &Roots, disks: &[Disk]) -> InventoryPatch {
    let sys = roots.sys.as_path();
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
        ("missing_firmware", json!(missing_firmware::missing(roots).devices)),
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
