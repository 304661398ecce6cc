//! Secure Boot and the boot order, from the firmware's variables (UEFI Specification 2.10, 3.3).

use crate::sysfs::names;
use boot_entries::efivars::entry_name;
use boot_entries::{Efivars, LoadOption};
use serde::Serialize;
use std::path::Path;

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
    /// Its description in the firmware's boot menu; empty when there is no such entry.
    pub description: String,
    /// It is tried.
    pub active: bool,
}

/// Contents of the variables below `sys`; `None` on a machine that did not boot by UEFI, or has them not mounted.
pub fn efi(sys: &Path) -> Option<Efi> {
    let variables = Efivars::below(sys);
    if names(variables.directory()).is_empty() {
        return None;
    }
    let value = |name: &str| variables.read(name).ok().flatten();
    let flag = |name: &str| Some(*value(name)?.first()? == 1);
    let entry = |name: &str| Some(id(*variables.numbers(name).ok()?.first()?));
    let boot_order = variables.numbers("BootOrder").unwrap_or_default().into_iter().map(|number| {
        let option = value(&entry_name(number)).and_then(|bytes| LoadOption::parse(&bytes));
        let (active, description) =
            option.map(|option| (option.active, option.description)).unwrap_or_default();
        BootEntry { id: id(number), description, active }
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
