//! `anneal node inventory`: what hardware an inspection found (`GET /v1/nodes/{ident}/inventory`).

mod lldp;
mod managers;
mod section;

use crate::output::{bytes, cell, fields, table};
use section::Section;
use serde_json::Value;

/// The machine, its disks and network interfaces, the switches it hangs on, and what hardware managers know. An
/// out-of-band inspection finds fewer fields than an agent: absent ones are left out.
pub fn tables(found: &Value) -> String {
    let (inventory, plugin_data) = (&found["inventory"], &found["plugin_data"]);
    let of = |key: &str, row: fn(&Value) -> Vec<String>| -> Vec<Vec<String>> {
        inventory[key].as_array().into_iter().flatten().map(row).collect()
    };
    let mut sections = vec![
        Section::new(&["DISK", "SIZE", "KIND", "MODEL", "SERIAL", "WWN"], of("disks", disk)),
        Section::new(
            &["INTERFACE", "MAC", "LINK", "SPEED", "IPV4", "IPV6", "DRIVER"],
            of("interfaces", interface),
        ),
        Section::new(
            &["INTERFACE", "SWITCH", "CHASSIS", "PORT", "DESCRIPTION", "VLAN", "ADDRESS"],
            neighbours(inventory, plugin_data),
        ),
    ];
    sections.extend(managers::sections(plugin_data));
    let mut out = fields(&[machine(inventory), reporters(plugin_data)].concat());
    for section in sections.iter().filter(|section| !section.rows.is_empty()) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&table(section.headings, &section.rows));
    }
    out
}

/// The sources of the inventory: the agent's hardware managers, or the driver if the BMC was inspected.
fn reporters(plugin_data: &Value) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let managers = plugin_data["configuration"]["managers"].as_array().into_iter().flatten();
    let named = |manager: &Value| format!("{} {}", cell(&manager["name"]), cell(&manager["version"]));
    let mut by: Vec<String> = managers.map(named).collect();
    by.extend(
        ["redfish", "fake"].into_iter().filter(|driver| !plugin_data[driver].is_null()).map(str::to_owned),
    );
    if !by.is_empty() {
        lines.push(("found by".to_owned(), by.join(", ")));
    }
    for (manager, problem) in plugin_data["anneal"]["problems"].as_object().into_iter().flatten() {
        lines.push((
            "missing".to_owned(),
            format!("{}: {}", crate::output::printable(manager), cell(problem)),
        ));
    }
    lines
}

/// One row a link, from the collector `lldp` if it reported, else from the interface.
fn neighbours(inventory: &Value, plugin_data: &Value) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for interface in inventory["interfaces"].as_array().into_iter().flatten() {
        let collected = &plugin_data["lldp_raw"][interface["name"].as_str().unwrap_or_default()];
        let tlvs = if collected.is_null() { &interface["lldp"] } else { collected };
        if let Some(found) = lldp::neighbour(tlvs) {
            let texts =
                [found.system, found.chassis, found.port, found.description, found.vlan, found.address];
            let texts = texts.map(|text| if text.is_empty() { "-".to_owned() } else { cell(&text.into()) });
            rows.push([&[cell(&interface["name"])], &texts[..]].concat());
        }
    }
    rows
}

/// The lines about the machine: name, and where its values are in the inventory with a text around each.
const MACHINE: [(&str, &[(&str, &str)]); 7] = [
    (
        "vendor",
        &[
            ("/system_vendor/manufacturer", "{}"),
            ("/system_vendor/product_name", "{}"),
            ("/system_vendor/serial_number", "serial number {}"),
        ],
    ),
    (
        "firmware",
        &[
            ("/system_vendor/firmware/vendor", "{}"),
            ("/system_vendor/firmware/version", "{}"),
            ("/system_vendor/firmware/build_date", "of {}"),
        ],
    ),
    (
        "cpu",
        &[
            ("/cpu/model_name", "{}"),
            ("/cpu/architecture", "{}"),
            ("/cpu/count", "{} logical"),
            ("/cpu/socket_count", "sockets: {}"),
            ("/cpu/frequency", "{} MHz"),
        ],
    ),
    ("memory", &[("/memory/total", "{}"), ("/memory/physical_mb", "{} MiB fitted")]),
    ("boot", &[("/boot/current_boot_mode", "{}"), ("/boot/pxe_interface", "by {}")]),
    ("bmc", &[("/bmc_address", "{}"), ("/bmc_v6address", "{}"), ("/bmc_mac", "{}")]),
    ("hostname", &[("/hostname", "{}")]),
];

fn machine(inventory: &Value) -> Vec<(String, String)> {
    let filled = |(path, around): &(&str, &str)| {
        let value = inventory.pointer(path).filter(|value| !value.is_null() && value.as_str() != Some(""))?;
        let text = match (*path, value.as_u64()) {
            ("/memory/total", Some(count)) => bytes(count),
            _ => cell(value),
        };
        Some(around.replace("{}", &text))
    };
    let line = |(name, parts): (&str, &[(&str, &str)])| {
        let text = parts.iter().filter_map(filled).collect::<Vec<_>>().join(", ");
        (!text.is_empty()).then(|| (name.to_owned(), text))
    };
    MACHINE.into_iter().filter_map(line).collect()
}

fn disk(disk: &Value) -> Vec<String> {
    let kind = match disk["rotational"].as_bool() {
        Some(true) => "rotational",
        Some(false) => "solid state",
        None => "",
    };
    let kind: Vec<_> = [disk["tran"].as_str().unwrap_or_default(), kind]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    vec![
        cell(&disk["name"]),
        disk["size"].as_u64().map_or_else(|| "-".to_owned(), bytes),
        if kind.is_empty() { "-".to_owned() } else { crate::output::printable(&kind.join(", ")) },
        cell(&disk["model"]),
        cell(&disk["serial"]),
        cell(&disk["wwn"]),
    ]
}

fn interface(interface: &Value) -> Vec<String> {
    let link = match interface["has_carrier"].as_bool() {
        Some(true) => "up",
        Some(false) => "down",
        None => "-",
    };
    let speed =
        interface["speed_mbps"].as_u64().map_or_else(|| "-".to_owned(), |speed| format!("{speed} Mb/s"));
    vec![
        cell(&interface["name"]),
        cell(&interface["mac_address"]),
        link.to_owned(),
        speed,
        cell(&interface["ipv4_address"]),
        cell(&interface["ipv6_address"]),
        cell(&interface["driver"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Shaped as ironic-python-agent 13 posts it.
    #[test]
    fn hardware_in_tables() {
        let found = json!({"inventory": {
            "interfaces": [{"name": "eno1", "mac_address": "52:54:00:12:34:56", "ipv4_address": "192.0.2.7",
                            "ipv6_address": null, "has_carrier": true, "lldp": null, "vendor": "0x1af4",
                            "speed_mbps": 10_000, "driver": "virtio_net"}],
            "cpu": {"model_name": "AMD EPYC", "frequency": "", "count": 2, "architecture": "x86_64",
                    "flags": ["fpu"], "socket_count": 1},
            "disks": [{"name": "/dev/nvme0n1", "model": "probe\u{1b}[2J", "size": 67_108_864, "rotational": false,
                       "wwn": "0xprobe", "serial": "P1", "tran": "nvme"},
                      {"name": "/dev/sda", "size": 1024, "rotational": true}],
            "memory": {"total": 25_276_502_016_u64, "physical_mb": 24576},
            "bmc_address": "192.0.2.9", "bmc_v6address": null,
            "system_vendor": {"product_name": "R640", "serial_number": "S1", "manufacturer": "Dell",
                              "firmware": {"vendor": "Dell", "version": "2.1", "build_date": "01/02/2026"}},
            "boot": {"current_boot_mode": "uefi", "pxe_interface": null}, "hostname": "ramdisk"
        }, "plugin_data": {}});
        assert_eq!(
            tables(&found),
            "vendor    Dell, R640, serial number S1\n\
             firmware  Dell, 2.1, of 01/02/2026\n\
             cpu       AMD EPYC, x86_64, 2 logical, sockets: 1\n\
             memory    23.5 GiB, 24576 MiB fitted\n\
             boot      uefi\n\
             bmc       192.0.2.9\n\
             hostname  ramdisk\n\
             \n\
             DISK          SIZE      KIND               MODEL      SERIAL  WWN\n\
             /dev/nvme0n1  64.0 MiB  nvme, solid state  probe\u{fffd}[2J  P1      0xprobe\n\
             /dev/sda      1.0 KiB   rotational         -          -       -\n\
             \n\
             INTERFACE  MAC                LINK  SPEED       IPV4       IPV6  DRIVER\n\
             eno1       52:54:00:12:34:56  up    10000 Mb/s  192.0.2.7  -     virtio_net\n"
        );
    }

    #[test]
    fn what_was_not_found_is_left_out() {
        let found = json!({"inventory": {
            "cpu": {"count": 8}, "memory": {"physical_mb": 1024}, "interfaces": [{"mac_address": "52:54:00:aa:bb:01"}]}});
        assert_eq!(
            tables(&found),
            "cpu     8 logical\n\
             memory  1024 MiB fitted\n\
             \n\
             INTERFACE  MAC                LINK  SPEED  IPV4  IPV6  DRIVER\n\
             -          52:54:00:aa:bb:01  -     -      -     -     -\n"
        );
        assert_eq!(tables(&json!({})), "");
    }
}
