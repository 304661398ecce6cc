//! Devices that a manager cares for, and parts of the agent that must leave the machine alone.

use agent_protocol::inventory::{Disk, SystemVendor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A device, or all devices that look alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// What kind of device.
    pub kind: ClaimKind,
    /// One device: `/dev/nvme0n1` of the inventory, or the PCI address `0000:3b:00.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// All devices whose properties are these; `*` in a value stands for any characters.
    #[serde(default, rename = "match", skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

/// Kind of a claimed device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimKind {
    /// A disk.
    Block,
    /// A PCI function; values as in sysfs (`0x1000`).
    Pci,
    /// The whole machine.
    Dmi,
}

impl ClaimKind {
    /// The properties by which devices of this kind are known.
    pub fn properties(self) -> &'static [&'static str] {
        match self {
            Self::Block => &["model", "serial", "vendor", "wwn", "tran"],
            Self::Pci => &["vendor", "device", "class"],
            Self::Dmi => &["manufacturer", "product_name", "serial_number"],
        }
    }
}

impl Claim {
    /// Whether the disk is one of those meant.
    pub fn covers_disk(&self, disk: &Disk) -> bool {
        let property = |name: &str| match name {
            "model" => disk.model.as_deref(),
            "serial" => disk.serial.as_deref(),
            "vendor" => disk.vendor.as_deref(),
            "wwn" => disk.wwn.as_deref(),
            "tran" => disk.tran.as_deref(),
            _ => None,
        };
        self.kind == ClaimKind::Block && self.covers(&disk.name, property)
    }

    /// Whether a device with this id and these properties is one of those meant. A claim without id and
    /// properties means none.
    pub fn covers<'a>(&self, id: &str, property: impl Fn(&str) -> Option<&'a str>) -> bool {
        let names_it = self.id.as_deref().is_none_or(|claimed| claimed == id);
        (self.id.is_some() || !self.properties.is_empty()) && names_it && all_like(&self.properties, property)
    }
}

/// What the agent must not do on a machine, since it would hang or harm it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quirk {
    /// What to leave out.
    pub suppress: Suppressed,
    /// On which machines, by DMI, as in a claim of kind `dmi`. The agent compares it with the machine itself;
    /// an empty one is for none.
    #[serde(rename = "match")]
    pub machine: BTreeMap<String, String>,
    /// Why, for the operator.
    pub reason: String,
}

/// A probe of the agent that a quirk can leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suppressed {
    /// Asking the BMC for its address over IPMI.
    Bmc,
    /// Listening for LLDP.
    Lldp,
    /// A name that this version does not know; it is reported and changes nothing.
    #[serde(other)]
    Unknown,
}

impl Quirk {
    /// Whether it is meant for this machine.
    pub fn covers(&self, machine: &SystemVendor) -> bool {
        let property = |name: &str| match name {
            "manufacturer" => Some(machine.manufacturer.as_str()),
            "product_name" => Some(machine.product_name.as_str()),
            "serial_number" => Some(machine.serial_number.as_str()),
            _ => None,
        };
        !self.machine.is_empty() && all_like(&self.machine, property)
    }
}

fn all_like<'a>(wanted: &BTreeMap<String, String>, property: impl Fn(&str) -> Option<&'a str>) -> bool {
    wanted.iter().all(|(name, pattern)| property(name).is_some_and(|value| like(pattern, value)))
}

/// Whether the value is as the pattern says, in which `*` stands for any characters.
pub fn like(pattern: &str, value: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == value };
    let Some(mut rest) = value.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = tail.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(text: &str) -> Claim {
        serde_json::from_str(text).expect("a claim")
    }

    #[test]
    fn a_star_stands_for_any_characters_and_nothing_else_does() {
        for (pattern, value, holds) in [
            ("FX700", "FX700", true),
            ("FX700", "FX7000", false),
            ("FX*", "FX700", true),
            ("*700", "FX700", true),
            ("F*7*0", "FX700", true),
            ("F*8*0", "FX700", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
            ("F?700", "FX700", false),
        ] {
            assert_eq!(like(pattern, value), holds, "{pattern} of {value}");
        }
    }

    #[test]
    fn a_claim_covers_what_it_names_and_an_empty_one_nothing() {
        let disk = Disk {
            name: "/dev/nvme0n1".into(),
            model: Some("ACME Nitro 2".into()),
            serial: Some("S1".into()),
            ..Disk::default()
        };
        let covers = |text: &str| claim(text).covers_disk(&disk);
        assert!(covers(r#"{"kind":"block","id":"/dev/nvme0n1"}"#));
        assert!(covers(r#"{"kind":"block","match":{"model":"ACME *","serial":"S1"}}"#));
        assert!(!covers(r#"{"kind":"block","match":{"model":"ACME *","serial":"S2"}}"#));
        assert!(!covers(r#"{"kind":"block","match":{"colour":"*"}}"#), "an unknown property matches nothing");
        assert!(!covers(r#"{"kind":"block","match":{"wwn":"*"}}"#), "it has none");
        assert!(!covers(r#"{"kind":"block","id":"/dev/sda","match":{"model":"ACME *"}}"#));
        assert!(!covers(r#"{"kind":"block"}"#));
        assert!(!covers(r#"{"kind":"pci","id":"/dev/nvme0n1"}"#));
    }

    #[test]
    fn a_quirk_is_for_the_machines_it_names() {
        let machine = SystemVendor {
            manufacturer: "FUJITSU".into(),
            product_name: "FX700".into(),
            ..Default::default()
        };
        let quirk = |properties: &str| -> Quirk {
            serde_json::from_str(&format!(r#"{{"suppress":"bmc","match":{properties},"reason":""}}"#))
                .expect("a quirk")
        };
        assert!(quirk(r#"{"manufacturer":"FUJITSU","product_name":"FX*"}"#).covers(&machine));
        assert!(!quirk(r#"{"manufacturer":"FUJITSU","product_name":"GX*"}"#).covers(&machine));
        assert!(!quirk("{}").covers(&machine));
    }
}
