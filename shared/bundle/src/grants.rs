//! What a hardware manager asks to be granted. What is not in its manifest it does not get.

use crate::fields::{FieldError, Fields, error};
use hwm_sdk::protocol::{Claim, ClaimKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Most claims of one manifest.
const CLAIMS_MAX: usize = 64;
/// Longest pattern of a claim, in bytes.
const PATTERN_MAX: usize = 128;

/// All that is granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// Devices, by what they are: a claim here has properties and no id.
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
    // Where a device is says nothing of which one it is.
    if fields.optional::<Value>("id")?.is_some() {
        return Err(error(format!("{path}.id"), "is not for a manifest: say by `match` what the device is"));
    }
    let properties: BTreeMap<String, String> = fields.optional("match")?.unwrap_or_default();
    if properties.is_empty() {
        return Err(error(format!("{path}.match"), "names nothing: `*` stands for any text"));
    }
    for (key, pattern) in &properties {
        let name = format!("{path}.match.{key}");
        // A claim that asks by something unknown would match more than it says.
        if !kind.properties().contains(&key.as_str()) {
            return Err(error(name, format!("is not one of {}", kind.properties().join(", "))));
        }
        let fits =
            |text: &str| (1..=PATTERN_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
        if !fits(pattern) {
            return Err(error(name, format!("is not 1 to {PATTERN_MAX} printable bytes")));
        }
    }
    Ok(Claim { kind, id: None, properties })
}
