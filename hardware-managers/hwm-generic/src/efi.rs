//! Secure Boot and the boot order, from the firmware's variables (UEFI Specification 2.10, 3.3).
//!
//! A file of efivarfs is `NAME-GUID`: 4 bytes of attributes, then the value.

use crate::sysfs::names;
use serde::Serialize;
use std::fs;
use std::path::Path;

/// Vendor GUID of the variables that the specification names.
const GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
/// LOAD_OPTION_ACTIVE.
const ACTIVE: u32 = 1;

/// State of the UEFI firmware.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Efi {
    /// Only signed loaders are started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_boot: Option<bool>,
    /// No platform key is enrolled: any program may change the keys of Secure Boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup_mode: Option<bool>,
    /// The entry that this boot came from: `0001`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_current: Option<String>,
    /// The entry of the next boot alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_next: Option<String>,
    /// Entries in the order they are tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub boot_order: Vec<BootEntry>,
}

/// An entry of the boot order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BootEntry {
    /// `0001` of `Boot0001`.
    pub id: String,
    /// What the firmware's menu calls it; empty when there is no such entry.
    pub description: String,
    /// It is tried.
    pub active: bool,
}

/// Contents of the variables below `sys`; `None` on a machine that did not boot by UEFI, or has them not mounted.
pub fn efi(sys: &Path) -> Option<Efi> {
    let variables = sys.join("firmware/efi/efivars");
    if names(&variables).is_empty() {
        return None;
    }
    let value = |name: &str| -> Option<Vec<u8>> {
        Some(fs::read(variables.join(format!("{name}-{GLOBAL}"))).ok()?.get(4..)?.to_vec())
    };
    let flag = |name: &str| Some(*value(name)?.first()? == 1);
    let entry = |name: &str| Some(id(words(&value(name)?).next()?));
    let order = value("BootOrder").unwrap_or_default();
    let boot_order = words(&order).map(|number| {
        let id = id(number);
        let option = value(&format!("Boot{id}")).and_then(|bytes| load_option(&bytes));
        let (active, description) = option.unwrap_or_default();
        BootEntry { id, description, active }
    });
    Some(Efi {
        secure_boot: flag("SecureBoot"),
        setup_mode: flag("SetupMode"),
        boot_current: entry("BootCurrent"),
        boot_next: entry("BootNext"),
        boot_order: boot_order.collect(),
    })
}

fn id(number: u16) -> String {
    format!("{number:04X}")
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u16> {
    bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
}

/// Whether an EFI_LOAD_OPTION is active, and its description: attributes (4 bytes), length of the path list (2), then
/// UCS-2 up to a zero.
fn load_option(bytes: &[u8]) -> Option<(bool, String)> {
    let attributes = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
    let description: Vec<u16> = words(bytes.get(6..)?).take_while(|&unit| unit != 0).collect();
    Some((attributes & ACTIVE != 0, String::from_utf16_lossy(&description)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = load_option(&bytes);
            prop_assert_eq!(words(&bytes).count(), bytes.len() / 2);
        }
    }
}
