//! What the manager reports of the hardware, with directories in the place of sysfs.

use crate::tree::Tree;
use hwm_sdk::{HardwareManager, StepContext};
use serde_json::{Value, json};

fn reported(name: &str) -> Value {
    let patch = Tree::new(name).manager().inventory(&StepContext::new()).unwrap();
    serde_json::to_value(patch).unwrap()
}

#[test]
fn pci_functions_are_reported_by_class_with_driver_and_numa_node() {
    let pci = |address: &str, vendor: &str, device: &str, class: &str, name: &str, revision: &str| json!({"address": address, "vendor": vendor, "device": device, "class": class, "class_name": name, "revision": revision});
    let with = |mut device: Value, numa_node: u8, driver: Option<&str>| {
        device["numa_node"] = numa_node.into();
        if let Some(driver) = driver {
            device["driver"] = driver.into();
        }
        device
    };
    let gpu = pci("0000:17:00.0", "0x10de", "0x20b5", "0x030200", "3D controller", "0xa1");
    let raid = pci("0000:31:00.0", "0x1000", "0x10e2", "0x010400", "RAID controller", "0x01");
    let accelerator = pci("0000:98:00.0", "0x1da3", "0x1060", "0x120000", "Processing accelerator", "0x01");
    let infiniband = pci("0000:b1:00.0", "0x15b3", "0x1021", "0x020700", "InfiniBand controller", "0x00");
    assert_eq!(
        reported("server")["extra"]["pci_devices"],
        json!([
            pci("0000:00:00.0", "0x8086", "0x09a2", "0x088000", "System peripheral", "0x04"),
            with(
                pci("0000:03:00.0", "0x102b", "0x0536", "0x030000", "VGA controller", "0x04"),
                0,
                Some("mgag200")
            ),
            with(gpu, 0, Some("nvidia")),
            with(raid, 0, Some("megaraid_sas")),
            with(accelerator, 1, None),
            with(infiniband, 1, Some("mlx5_core")),
        ])
    );
    let recorded = reported("virtual-machine");
    assert_eq!(recorded["extra"].as_object().unwrap().keys().collect::<Vec<_>>(), ["pci_devices"]);
    assert_eq!(recorded["extra"]["pci_devices"][3]["class_name"], "Ethernet controller");
    assert_eq!(recorded["extra"]["pci_devices"][5]["class_name"], "Unclassified device");
}

#[test]
fn tpm_bmc_and_their_firmware_are_reported() {
    let server = reported("server");
    assert_eq!(
        server["extra"]["tpm"],
        json!([{"name": "tpm0", "version": "2.0", "description": "TPM 2.0 Device", "driver": "tpm_tis"}])
    );
    assert_eq!(
        server["extra"]["bmc"],
        json!({"interface": "KCS", "ipmi_version": "2.0", "firmware_version": "7.10", "manufacturer_id": "0x0002a2",
               "product_id": "0x0100"})
    );
    assert_eq!(
        server["firmware"],
        json!([{"component": "bios", "current_version": "1.8.2"}, {"component": "bmc", "current_version": "7.10"}])
    );
}
