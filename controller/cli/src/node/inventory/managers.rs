//! What hardware managers reported beyond the inventory, each line with its manager: `plugin_data.anneal.managers`. Pure.

use super::section::Section;
use crate::output::{bytes, cell};
use serde_json::Value;

/// Members of `extra` that have sections of their own.
const KNOWN: [&str; 5] = ["bmc", "efi", "missing_firmware", "pci_devices", "tpm"];

/// Sections in the order that people read them.
pub fn sections(plugin_data: &Value) -> Vec<Section> {
    let managers = &plugin_data["anneal"]["managers"];
    let of = |path: &str, row: fn(&Value) -> Vec<String>| -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for (manager, patch) in managers.as_object().into_iter().flatten() {
            for item in items(patch.pointer(path).unwrap_or(&Value::Null)) {
                rows.push([row(item), vec![cell(&manager.as_str().into())]].concat());
            }
        }
        rows
    };
    let (gpus, others): (Vec<_>, Vec<_>) =
        of("/extra/pci_devices", pci).into_iter().partition(|row| computes(&row[1]));
    vec![
        Section::new(
            &["RAID CONTROLLER", "MODEL", "FIRMWARE", "PCI", "BY"],
            of("/raid/controllers", controller),
        ),
        Section::new(
            &["VOLUME", "CONTROLLER", "RAID", "SIZE", "STATE", "DISKS", "DEVICE", "BY"],
            of("/raid/logical_disks", volume),
        ),
        Section::new(
            &["DRIVE", "CONTROLLER", "SIZE", "MEDIA", "STATE", "MODEL", "SERIAL", "BY"],
            of("/raid/physical_disks", drive),
        ),
        Section::new(&["TPM", "VERSION", "DRIVER", "BY"], of("/extra/tpm", tpm)),
        Section::new(&["BMC", "IPMI", "FIRMWARE", "MANUFACTURER", "PRODUCT", "BY"], of("/extra/bmc", bmc)),
        Section::new(&["SECURE BOOT", "SETUP MODE", "BOOTED", "NEXT", "ORDER", "BY"], of("/extra/efi", efi)),
        Section::new(
            &["GPU", "CLASS", "ID", "NUMA", "DRIVER", "BY"],
            gpus.into_iter().map(without_code).collect(),
        ),
        Section::new(
            &["PCI", "CLASS", "ID", "NUMA", "DRIVER", "BY"],
            others.into_iter().map(without_code).collect(),
        ),
        Section::new(
            &["LACKS FIRMWARE", "DRIVER", "FILES", "BY"],
            of("/extra/missing_firmware", missing_firmware),
        ),
        Section::new(&["FIRMWARE", "VERSION", "BY"], of("/firmware", firmware)),
        Section::new(&["BIOS SETTING", "VALUE", "CAN BE", "BY"], of("/bios_settings", setting)),
        Section::new(&["ALSO", "VALUE", "BY"], also(managers)),
    ]
}

/// A list's items, or the one thing that is no list.
fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().collect(),
        one => vec![one],
    }
}

fn cells(item: &Value, keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| cell(&item[*key])).collect()
}

fn size(item: &Value) -> String {
    item["size_bytes"].as_u64().map_or_else(|| "-".to_owned(), bytes)
}

fn controller(item: &Value) -> Vec<String> {
    cells(item, &["id", "model", "firmware_version", "pci_address"])
}

fn volume(item: &Value) -> Vec<String> {
    let disks: Vec<String> = items(&item["physical_disks"]).into_iter().map(cell).collect();
    let disks = disks.join(" ");
    [
        cells(item, &["id", "controller", "raid_level"]),
        vec![size(item), cell(&item["state"]), disks, cell(&item["device"])],
    ]
    .concat()
}

fn drive(item: &Value) -> Vec<String> {
    [
        cells(item, &["id", "controller"]),
        vec![size(item)],
        cells(item, &["media", "state", "model", "serial"]),
    ]
    .concat()
}

fn tpm(item: &Value) -> Vec<String> {
    cells(item, &["name", "version", "driver"])
}

fn bmc(item: &Value) -> Vec<String> {
    cells(item, &["interface", "ipmi_version", "firmware_version", "manufacturer_id", "product_id"])
}

fn efi(item: &Value) -> Vec<String> {
    let flag = |key: &str| match item[key].as_bool() {
        Some(true) => "on",
        Some(false) => "off",
        None => "-",
    };
    let entry = |entry: &Value| {
        let inactive = if entry["active"] == false { " (off)" } else { "" };
        format!("{} {}{inactive}", cell(&entry["id"]), cell(&entry["description"]))
    };
    let order: Vec<String> = items(&item["boot_order"]).into_iter().map(entry).collect();
    let flags = [flag("secure_boot").to_owned(), flag("setup_mode").to_owned()];
    [&flags[..], &cells(item, &["boot_current", "boot_next"]), &[order.join(", ")]].concat()
}

/// The class's code is second, until [`without_code`] takes it out.
fn pci(item: &Value) -> Vec<String> {
    let plain = |key: &str| item[key].as_str().unwrap_or("?").trim_start_matches("0x").to_owned();
    let id = cell(&format!("{}:{}", plain("vendor"), plain("device")).into());
    vec![
        cell(&item["address"]),
        plain("class"),
        cell(&item["class_name"]),
        id,
        cell(&item["numa_node"]),
        cell(&item["driver"]),
    ]
}

/// Display controllers and processing accelerators.
fn computes(class: &str) -> bool {
    class.starts_with("03") || class.starts_with("12")
}

fn without_code(mut row: Vec<String>) -> Vec<String> {
    row.remove(1);
    row
}

fn missing_firmware(item: &Value) -> Vec<String> {
    let files: Vec<String> = items(&item["firmware"]).into_iter().map(cell).collect();
    [cells(item, &["address", "driver"]), vec![files.join(" ")]].concat()
}

fn firmware(item: &Value) -> Vec<String> {
    cells(item, &["component", "current_version"])
}

fn setting(item: &Value) -> Vec<String> {
    let number = |key: &str| item[key].as_i64().map_or_else(String::new, |number| number.to_string());
    let range = |low: &str, high: &str| format!("{}..{}", number(low), number(high));
    let can_be = match item["attribute_type"].as_str() {
        Some("Enumeration") => {
            items(&item["allowable_values"]).into_iter().map(cell).collect::<Vec<_>>().join(" | ")
        }
        Some("Integer") => range("lower_bound", "upper_bound"),
        Some("String") if item["max_length"].is_null() && item["min_length"].is_null() => "text".to_owned(),
        Some("String") => format!("text of {}", range("min_length", "max_length")),
        other => other.unwrap_or("-").to_lowercase(),
    };
    let fixed = if item["read_only"] == true { " (read-only)" } else { "" };
    vec![cell(&item["name"]), cell(&item["value"]), cell(&format!("{can_be}{fixed}").into())]
}

/// The members of `extra` that have no section of their own.
fn also(managers: &Value) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (manager, patch) in managers.as_object().into_iter().flatten() {
        for (name, value) in patch["extra"].as_object().into_iter().flatten() {
            if !KNOWN.contains(&name.as_str()) {
                rows.push([&name.as_str().into(), value, &manager.as_str().into()].map(cell).to_vec());
            }
        }
    }
    rows
}
