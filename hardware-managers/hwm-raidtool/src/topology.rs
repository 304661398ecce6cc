//! What the tool says of controllers, drives and volumes, in the words of the inventory. Pure but for [`read`].

use crate::tool::{Answer, Tool};
use hwm_sdk::StepError;
use hwm_sdk::protocol::{BiosSetting, LogicalDisk, PhysicalDisk, Raid, RaidController};
use serde_json::Value;

/// Controllers with what is behind them and their settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    /// As the inventory reports it.
    pub raid: Raid,
    /// Settings of controllers: `c0.patrol_read`.
    pub settings: Vec<BiosSetting>,
    /// Names of volumes by `(controller, id)`.
    pub names: Vec<((String, String), String)>,
}

impl Topology {
    /// The name that a volume was given.
    pub fn name_of(&self, disk: &LogicalDisk) -> &str {
        let named = self.names.iter().find(|((of, id), _)| *of == disk.controller && *id == disk.id);
        named.map_or("", |(_, name)| name)
    }
}

/// Ask the tool.
///
/// # Errors
/// As of [`Tool::ask`].
pub fn read(tool: &Tool) -> Result<Topology, StepError> {
    let mut topology = Topology::default();
    for answer in tool.ask(&["/call", "show", "all"])? {
        add(&mut topology, &answer);
    }
    Ok(topology)
}

/// The words of the tool for RAID levels, and Ironic's.
pub const LEVELS: [(&str, &str); 7] = [
    ("RAID0", "0"),
    ("RAID1", "1"),
    ("RAID5", "5"),
    ("RAID6", "6"),
    ("RAID10", "1+0"),
    ("RAID50", "5+0"),
    ("RAID60", "6+0"),
];

fn add(topology: &mut Topology, answer: &Answer) {
    let (data, id) = (&answer.data, answer.controller.to_string());
    topology.raid.controllers.push(RaidController {
        id: id.clone(),
        model: text(&data["Basics"]["Model"]).unwrap_or_default(),
        firmware_version: text(&data["Version"]["Firmware Version"]),
        pci_address: text(&data["Basics"]["PCI Address"]).and_then(|address| pci_address(&address)),
    });
    let rows = |list: &str| data[list].as_array().cloned().unwrap_or_default();
    let (drives, volumes) = (rows("PD LIST"), rows("VD LIST"));
    topology.raid.physical_disks.extend(drives.iter().filter_map(|row| {
        Some(PhysicalDisk {
            id: text(&row["EID:Slt"])?,
            controller: id.clone(),
            size_bytes: bytes(row["Size"].as_str()?)?,
            state: drive_state(row["State"].as_str()?),
            media: text(&row["Med"]).map(|media| media.to_lowercase()),
            model: text(&row["Model"]),
            serial: text(&row["SN"]),
        })
    }));
    for row in &volumes {
        let Some((group, number)) = row["DG/VD"].as_str().and_then(|both| both.split_once('/')) else {
            continue;
        };
        let members = drives.iter().filter(|drive| group_of(drive).as_deref() == Some(group));
        topology.names.push(((id.clone(), number.to_owned()), text(&row["Name"]).unwrap_or_default()));
        topology.raid.logical_disks.push(LogicalDisk {
            id: number.to_owned(),
            controller: id.clone(),
            raid_level: level(row["TYPE"].as_str().unwrap_or_default()),
            size_bytes: row["Size"].as_str().and_then(bytes).unwrap_or_default(),
            physical_disks: members.filter_map(|drive| text(&drive["EID:Slt"])).collect(),
            state: volume_state(row["State"].as_str().unwrap_or_default()),
            device: text(&row["OS Drive Name"]),
        });
    }
    topology.settings.extend(rows("Controller Properties").iter().filter_map(|row| {
        let possible = row["Possible"].as_array().map(|values| values.iter().filter_map(text).collect());
        Some(BiosSetting {
            name: format!("c{id}.{}", row["Ctrl_Prop"].as_str()?),
            value: text(&row["Value"]),
            attribute_type: Some(if possible.is_some() { "Enumeration" } else { "String" }.to_owned()),
            allowable_values: possible,
            ..BiosSetting::default()
        })
    }));
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str()?.trim();
    (!text.is_empty() && text != "-").then(|| text.to_owned())
}

/// The tool counts drive groups in numbers, and writes `-` for none.
fn group_of(drive: &Value) -> Option<String> {
    drive["DG"].as_u64().map(|group| group.to_string())
}

/// `893.750 GB`; its units are binary. `None` for what is no size, or too large for a number.
pub fn bytes(size: &str) -> Option<u64> {
    let (number, unit) = size.trim().split_once(' ')?;
    let shift = match unit {
        "KB" => 10,
        "MB" => 20,
        "GB" => 30,
        "TB" => 40,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits =
        |text: &str| text.len() <= 6 && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let value = whole.parse::<u128>().ok()? * scale + fraction.parse::<u128>().ok()?;
    u64::try_from((value << shift) / scale).ok()
}

/// `00:31:00:00` is `0000:31:00.0`.
fn pci_address(text: &str) -> Option<String> {
    let parts: Vec<u32> =
        text.split(':').map(|part| u32::from_str_radix(part, 16)).collect::<Result<_, _>>().ok()?;
    let [domain, bus, device, function] = parts[..] else { return None };
    Some(format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}"))
}

fn level(kind: &str) -> String {
    let found = LEVELS.iter().find(|(theirs, _)| *theirs == kind);
    found.map_or_else(|| kind.to_owned(), |(_, ours)| (*ours).to_owned())
}

fn drive_state(word: &str) -> String {
    match word {
        "Onln" => "online",
        "UGood" => "ready",
        "UBad" => "failed",
        "Offln" => "offline",
        "GHS" | "DHS" => "hotspare",
        "Rbld" => "rebuilding",
        "JBOD" => "jbod",
        other => other,
    }
    .to_owned()
}

fn volume_state(word: &str) -> String {
    match word {
        "Optl" => "optimal",
        "Dgrd" | "Pdgd" => "degraded",
        "OfLn" => "offline",
        other => other,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_binary() {
        assert_eq!(bytes("893.750 GB"), Some(893 * (1 << 30) + (3 << 28)));
        assert_eq!(bytes("1.5 TB"), Some(3 << 39));
        assert_eq!(bytes("512 KB"), Some(512 << 10));
        for wrong in ["", "GB", "x GB", "1 PB", "-1 GB", "1.2.3 GB", "12345678 GB", "1. GB"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
        assert_eq!(pci_address("00:31:00:00").as_deref(), Some("0000:31:00.0"));
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in ".{0,24}") {
            let _ = (bytes(&text), pci_address(&text));
        }
    }
}
