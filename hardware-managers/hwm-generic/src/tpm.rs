//! Trusted Platform Modules (`/sys/class/tpm`).

use crate::sysfs::{link, names, text};
use serde::Serialize;
use std::path::Path;

/// A TPM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tpm {
    /// `tpm0`.
    pub name: String,
    /// Version of the TPM specification, `2.0` or `1.2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its ACPI name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Kernel driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
}

/// All of them, by name.
pub fn tpms(sys: &Path) -> Vec<Tpm> {
    let class = sys.join("class/tpm");
    let tpm = |name: String| {
        let of = class.join(&name);
        let version = match text(&of.join("tpm_version_major")).as_deref() {
            Some("1") => Some("1.2"),
            Some("2") => Some("2.0"),
            _ => None,
        };
        Tpm {
            version: version.map(str::to_owned),
            description: text(&of.join("device/description")),
            driver: link(&of.join("device/driver")),
            name,
        }
    };
    names(&class).into_iter().map(tpm).collect()
}
