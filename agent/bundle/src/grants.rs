//! What a hardware manager asks to be granted. What is not in its manifest it does not get.

use crate::fields::{FieldError, Fields, error};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Most claims of one manifest.
const CLAIMS_MAX: usize = 64;
/// Longest pattern of a claim, in bytes.
const PATTERN_MAX: usize = 128;

/// Kinds of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClaimKind {
    /// A block device; it may be opened.
    Block,
    /// A PCI function; its configuration space may be read.
    Pci,
    /// The machine itself, as its firmware names it.
    Dmi,
}

impl ClaimKind {
    /// What a claim of this kind may match by.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Block => &["model", "vendor", "serial", "wwn", "transport"],
            Self::Pci => &["vendor", "device", "subsystem_vendor", "subsystem_device", "class"],
            Self::Dmi => &["sys_vendor", "product_name", "product_family", "board_vendor", "board_name"],
        }
    }
}

/// Devices that a manager may touch: those of a kind that match every pattern (`*` stands for any text).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The kind.
    pub kind: ClaimKind,
    /// Patterns by property; none means every device of the kind.
    #[serde(rename = "match", default)]
    pub patterns: BTreeMap<String, String>,
}

/// All that is granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// Devices.
    #[serde(default)]
    pub devices: Vec<Claim>,
    /// Whether it sees the machine's network.
    pub network: bool,
    /// Room in its writable `/scratch`, MiB, 0 to 4096.
    pub scratch_mib: u32,
    /// Memory, MiB, 16 to 16384.
    pub memory_mib: u32,
    /// Processes and threads at once, 1 to 1024.
    pub pids: u32,
}

impl Default for Grants {
    fn default() -> Self {
        Self { devices: Vec::new(), network: false, scratch_mib: 16, memory_mib: 256, pids: 64 }
    }
}

impl Grants {
    /// From the field `grants`; with the names in it that mean nothing.
    pub(crate) fn read(value: Value) -> Result<(Self, Fields), FieldError> {
        let mut fields = Fields::of("grants", value)?;
        let default = Self::default();
        let given: Vec<Value> = fields.optional("devices")?.unwrap_or_default();
        if given.len() > CLAIMS_MAX {
            return Err(error("grants.devices", format!("has more than {CLAIMS_MAX} claims")));
        }
        let devices = given.into_iter().enumerate().map(|(index, value)| claim(index, value));
        let devices = devices.collect::<Result<_, _>>()?;
        let grants = Self {
            devices,
            network: fields.optional("network")?.unwrap_or(default.network),
            scratch_mib: fields.bounded("scratch_mib", 0..=4096, default.scratch_mib)?,
            memory_mib: fields.bounded("memory_mib", 16..=16384, default.memory_mib)?,
            pids: fields.bounded("pids", 1..=1024, default.pids)?,
        };
        Ok((grants, fields))
    }
}

fn claim(index: usize, value: Value) -> Result<Claim, FieldError> {
    let path = format!("grants.devices[{index}]");
    let mut fields = Fields::of(&path, value)?;
    let kind: ClaimKind = fields.required("kind")?;
    let patterns: BTreeMap<String, String> = fields.optional("match")?.unwrap_or_default();
    for (key, pattern) in &patterns {
        let name = format!("{path}.match.{key}");
        // A claim that asks by something unknown would match more than it says.
        if !kind.keys().contains(&key.as_str()) {
            return Err(error(name, format!("is not one of {}", kind.keys().join(", "))));
        }
        let fits =
            |text: &str| (1..=PATTERN_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
        if !fits(pattern) {
            return Err(error(name, format!("is not 1 to {PATTERN_MAX} printable bytes")));
        }
    }
    Ok(Claim { kind, patterns })
}
