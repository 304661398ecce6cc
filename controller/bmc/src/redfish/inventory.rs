//! From Redfish resources to an inventory as ironic-python-agent gives it: pure functions over JSON.
//!
//! Names are those of the schemas ComputerSystem, Processor, EthernetInterface, Drive and SimpleStorage
//! (DSP0268). Services leave out what they like and give numbers as strings: what is not understood is left
//! out, and noted where the inventory would be wrong by it.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::ops::RangeInclusive;

use mac::Mac;
use serde_json::{Map, Value, json};

use super::system;

const LONGEST_TEXT: usize = 256;

/// Resources of a collection.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) found: Vec<Value>,
    /// None was left out.
    pub(super) complete: bool,
}

/// What was read of a system.
pub(super) struct Parts<'a> {
    pub(super) system: &'a Value,
    pub(super) processors: &'a Listed,
    pub(super) nics: &'a [Value],
    /// Drives, or devices of SimpleStorage.
    pub(super) drives: &'a [Value],
}

/// A text: one line, bounded, not empty.
fn text(from: &Value, key: &str) -> Option<String> {
    let text = from.get(key)?.as_str()?;
    let text: String = text.chars().filter(|c| !c.is_control()).take(LONGEST_TEXT).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A number in `range`, also when written as a string.
fn number(from: &Value, key: &str, range: RangeInclusive<f64>) -> Option<f64> {
    let value = from.get(key)?;
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    range.contains(&number).then_some(number)
}

/// A whole number in `range`, which ends below 2^63.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is positive")]
fn whole(from: &Value, key: &str, range: RangeInclusive<f64>) -> Option<u64> {
    let exact = from.get(key).and_then(Value::as_u64);
    let number = number(from, key, range)?;
    Some(exact.unwrap_or(number.round() as u64))
}

/// `Status.State` says that the part is not there.
fn is_absent(part: &Value) -> bool {
    part.get("Status").and_then(|status| status.get("State")).is_some_and(|state| state == "Absent")
}

fn put(into: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        into.insert(key.to_owned(), value.into());
    }
}

/// The inventory. `host` is that of the BMC's address.
pub(super) fn inventory(
    parts: &Parts<'_>,
    host: Option<&str>,
    notes: &mut Vec<String>,
) -> Map<String, Value> {
    let system = parts.system;
    let mut vendor = Map::new();
    put(&mut vendor, "manufacturer", text(system, "Manufacturer"));
    put(&mut vendor, "product_name", text(system, "Model"));
    put(&mut vendor, "serial_number", text(system, "SerialNumber"));
    put(&mut vendor, "firmware", text(system, "BiosVersion").map(|version| json!({"version": version})));
    let mut inventory = Map::new();
    inventory.insert("cpu".to_owned(), cpu(parts, notes).into());
    inventory.insert("memory".to_owned(), memory(system, notes).into());
    inventory.insert("interfaces".to_owned(), interfaces(parts.nics, notes).into());
    inventory.insert("disks".to_owned(), disks(parts.drives, notes).into());
    inventory.insert("system_vendor".to_owned(), vendor.into());
    let mode = system::boot_setting(system).mode;
    inventory.insert("boot".to_owned(), mode.map_or(json!({}), |m| json!({"current_boot_mode": m})));
    put(&mut inventory, "hostname", text(system, "HostName"));
    if let Some(host) = host {
        let v6 = host.trim_matches(['[', ']']);
        match v6.parse::<Ipv6Addr>() {
            Ok(address) => inventory.insert("bmc_v6address".to_owned(), address.to_string().into()),
            Err(_) => inventory.insert("bmc_address".to_owned(), host.into()),
        };
    }
    inventory
}

/// Fields that only Redfish reports.
pub(super) fn plugin_data(system: &Value) -> Map<String, Value> {
    let mut data = Map::new();
    put(&mut data, "uuid", text(system, "UUID"));
    put(&mut data, "sku", text(system, "SKU"));
    put(&mut data, "health", system.get("Status").and_then(|status| text(status, "Health")));
    data
}

fn cpu(parts: &Parts<'_>, notes: &mut Vec<String>) -> Map<String, Value> {
    let is_cpu = |one: &&Value| {
        one.get("ProcessorType").and_then(Value::as_str).is_none_or(|kind| kind == "CPU") && !is_absent(one)
    };
    let processors: Vec<&Value> = parts.processors.found.iter().filter(is_cpu).collect();
    let most = 1.0..=65_536.0;
    let threads = |one: &&Value| {
        whole(one, "TotalThreads", most.clone()).or_else(|| whole(one, "TotalCores", most.clone()))
    };
    let summary = parts.system.get("ProcessorSummary").cloned().unwrap_or_default();
    let reported = |key| whole(&summary, key, most.clone());
    // A sum with a part missing would be wrong; the service's own is not.
    let sum = processors.iter().map(threads).sum::<Option<u64>>();
    let sum = sum.filter(|sum| *sum > 0 && parts.processors.complete);
    let count = reported("LogicalProcessorCount")
        .or(sum)
        .or_else(|| reported("CoreCount"))
        .or_else(|| reported("Count"));
    if count.is_none() {
        notes.push("it reports no number of processors".to_owned());
    }
    let first = |key| processors.iter().find_map(|one| text(one, key));
    let mut cpu = Map::new();
    put(&mut cpu, "count", count);
    put(&mut cpu, "model_name", first("Model").or_else(|| text(&summary, "Model")));
    let speed = processors.iter().find_map(|one| whole(one, "MaxSpeedMHz", 1.0..=100_000.0));
    put(&mut cpu, "frequency", speed);
    let architecture = first("InstructionSet").or_else(|| first("ProcessorArchitecture"));
    put(&mut cpu, "architecture", architecture.map(|name| architecture_name(&name)));
    cpu
}

/// The kernel's name of an architecture.
fn architecture_name(name: &str) -> String {
    match name {
        "x86-64" => "x86_64".to_owned(),
        "ARM-A64" => "aarch64".to_owned(),
        "PowerISA" | "Power" => "ppc64le".to_owned(),
        // Every x86 server of the last twenty years.
        "x86" => "x86_64".to_owned(),
        other => other.to_lowercase(),
    }
}

fn memory(system: &Value, notes: &mut Vec<String>) -> Map<String, Value> {
    // 1 PiB at most.
    let gib = system
        .get("MemorySummary")
        .and_then(|summary| number(summary, "TotalSystemMemoryGiB", (1.0 / 1024.0)..=f64::from(1 << 20)));
    let mut memory = Map::new();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and below 2^31")]
    let megabytes = gib.map(|gib| (gib * 1024.0).round() as u64);
    if megabytes.is_none() {
        notes.push("it reports no size of the memory".to_owned());
    }
    put(&mut memory, "physical_mb", megabytes);
    put(&mut memory, "total", megabytes.map(|megabytes| megabytes << 20));
    memory
}

fn interfaces(nics: &[Value], notes: &mut Vec<String>) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let mut interfaces = Vec::new();
    for nic in nics.iter().filter(|nic| !is_absent(nic)) {
        let name = text(nic, "Id").or_else(|| text(nic, "Name")).unwrap_or_else(|| "unnamed".to_owned());
        let mac = text(nic, "MACAddress").or_else(|| text(nic, "PermanentMACAddress"));
        let Some(mac) = mac.as_deref().and_then(mac_address) else {
            notes.push(format!("interface {name} has no MAC address and is left out"));
            continue;
        };
        if !seen.insert(mac.clone()) {
            notes.push(format!("interface {name} has the MAC address {mac} of another and is left out"));
            continue;
        }
        let mut interface = Map::new();
        interface.insert("name".to_owned(), name.into());
        interface.insert("mac_address".to_owned(), mac.into());
        put(&mut interface, "speed_mbps", whole(nic, "SpeedMbps", 1.0..=10_000_000.0));
        let carrier = match nic.get("LinkStatus").and_then(Value::as_str) {
            Some("LinkUp") => Some(true),
            Some("LinkDown" | "NoLink") => Some(false),
            _ => None,
        };
        put(&mut interface, "has_carrier", carrier);
        interfaces.push(interface.into());
    }
    interfaces
}

/// In Ironic's form; `None` for the null and the broadcast address.
fn mac_address(text: &str) -> Option<String> {
    let mac = text.trim().parse::<Mac>().ok()?;
    (![[0; 6], [0xff; 6]].contains(&mac.octets())).then(|| mac.to_string())
}

fn disks(drives: &[Value], notes: &mut Vec<String>) -> Vec<Value> {
    let mut disks = Vec::new();
    for drive in drives.iter().filter(|drive| drive.is_object() && !is_absent(drive)) {
        let name = text(drive, "Name").or_else(|| text(drive, "Id")).unwrap_or_else(|| "unnamed".to_owned());
        // 1 EiB at most.
        let size = whole(drive, "CapacityBytes", 1.0..=1_152_921_504_606_846_976.0);
        if size.is_none() {
            notes.push(format!("disk {name} reports no size"));
        }
        let mut disk = Map::new();
        disk.insert("name".to_owned(), name.into());
        put(&mut disk, "size", size);
        put(&mut disk, "model", text(drive, "Model"));
        put(&mut disk, "serial", text(drive, "SerialNumber"));
        put(&mut disk, "vendor", text(drive, "Manufacturer"));
        put(&mut disk, "wwn", wwn(drive));
        let rotational = match drive.get("MediaType").and_then(Value::as_str) {
            Some("HDD") => Some(true),
            Some("SSD") => Some(false),
            _ => None,
        };
        put(&mut disk, "rotational", rotational);
        disks.push(disk.into());
    }
    disks
}

/// The world-wide name among the identifiers of a drive.
fn wwn(drive: &Value) -> Option<String> {
    let identifiers = drive.get("Identifiers")?.as_array()?;
    let worldwide =
        |id: &&Value| id.get("DurableNameFormat").is_some_and(|format| format == "NAA" || format == "EUI");
    text(identifiers.iter().find(worldwide)?, "DurableName")
}

#[cfg(test)]
#[path = "inventory_tests.rs"]
mod tests;
