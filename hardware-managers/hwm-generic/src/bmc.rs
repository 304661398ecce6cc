//! The BMC, as far as the kernel's IPMI driver and SMBIOS report it. Without its address: that takes IPMI commands,
//! which this manager does not send.

use crate::sysfs::{names, text};
use serde::Serialize;
use std::fs;
use std::path::Path;

/// SMBIOS structure type "IPMI Device Information" (DSP0134, 7.39).
const IPMI_DEVICE: &str = "38-";

/// The BMC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Bmc {
    /// How the host talks to it: `KCS`, `SMIC`, `BT`, `SSIF`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// `2.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipmi_version: Option<String>,
    /// Its firmware: `7.10`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware_version: Option<String>,
    /// IANA enterprise number: `0x0002a2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manufacturer_id: Option<String>,
    /// `0x0100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product_id: Option<String>,
}

/// The BMC of the machine, if SMBIOS or the kernel reports one.
pub fn bmc(sys: &Path) -> Option<Bmc> {
    let devices = sys.join("bus/platform/devices");
    let driven = names(&devices).into_iter().find(|name| name.starts_with("ipmi_bmc"));
    let file = |file: &str| text(&devices.join(driven.as_ref()?).join(file));
    let (interface, specified) = structure(sys).unwrap_or_default();
    let found = Bmc {
        interface,
        ipmi_version: file("ipmi_version").or(specified),
        firmware_version: file("firmware_revision"),
        manufacturer_id: file("manufacturer_id"),
        product_id: file("product_id"),
    };
    (found != Bmc::default()).then_some(found)
}

fn structure(sys: &Path) -> Option<(Option<String>, Option<String>)> {
    let entries = sys.join("firmware/dmi/entries");
    let name = names(&entries).into_iter().find(|name| name.starts_with(IPMI_DEVICE))?;
    Some(parse(&fs::read(entries.join(name).join("raw")).ok()?))
}

/// Interface type at 4, version of the specification at 5: a decimal digit in each half.
fn parse(raw: &[u8]) -> (Option<String>, Option<String>) {
    let interface = match raw.get(4) {
        Some(1) => Some("KCS"),
        Some(2) => Some("SMIC"),
        Some(3) => Some("BT"),
        Some(4) => Some("SSIF"),
        _ => None,
    };
    let version = raw.get(5).filter(|&&version| version > 0);
    (interface.map(str::to_owned), version.map(|version| format!("{}.{}", version >> 4, version & 0xf)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DSP0134 7.39.
    #[test]
    fn the_structure_names_the_interface_and_the_version() {
        let of = |interface: u8, version: u8| {
            let (interface, version) = parse(&[38, 18, 0, 0, interface, version]);
            (interface.unwrap_or_default(), version.unwrap_or_default())
        };
        let named = [0, 1, 2, 3, 4, 5].map(|kind| of(kind, 0).0);
        assert_eq!(named, ["", "KCS", "SMIC", "BT", "SSIF", ""]);
        assert_eq!([0, 0x20, 0x15].map(|version| of(1, version).1), ["", "2.0", "1.5"]);
        assert_eq!(parse(&[38, 18]), (None, None), "cut off");
    }
}
