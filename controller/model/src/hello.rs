//! The hello of an instance: where a deployment asks for it, it ends only when the instance has requested a URL that no one
//! else knows, which cloud-init's `phone_home` does at the end of the first boot.

use crate::provision::ProvisionState;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;
use std::time::Duration;
use uuid::Uuid;

/// Key of `instance_info` that asks for a hello: for how many seconds it is awaited, or `true`.
pub const WAIT_FOR_HELLO: &str = "anneal_wait_for_hello";

/// Seconds where none are named: what a node has for the boot of its ramdisk, too.
const DEFAULT_S: u64 = 1800;

/// Seconds that can be named.
const POSSIBLE_S: RangeInclusive<u64> = 10..=86_400;

/// Seconds between two tries of cloud-init.
const TRY_S: u64 = 3;

/// Fewest tries: cloud-init's own number.
const TRIES_MIN: u64 = 10;

/// States in which a deployment may await a hello.
pub const AWAITED_IN: [ProvisionState; 3] =
    [ProvisionState::Deploying, ProvisionState::DeployWait, ProvisionState::DeployHold];

/// A hello that a run awaits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// What the instance shows. Its name makes the store encrypt it; without its key it is lost, and matches nothing.
    #[serde(default, rename = "secret_nonce")]
    pub nonce: HelloNonce,
    /// For how many seconds it is awaited.
    pub limit_s: u64,
    /// When it came.
    #[serde(default)]
    pub heard_at: Option<Timestamp>,
}

/// A value that only the configuration drive of one deployment contains. A secret.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HelloNonce(String);

impl HelloNonce {
    /// A new one: 64 hexadecimal digits with 244 bits of the operating system's randomness.
    pub fn fresh() -> Self {
        Self(format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()))
    }

    /// What a request shows as its nonce.
    pub fn shown(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The secret, for the configuration drive and for comparisons in constant time.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for HelloNonce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HelloNonce(******)")
    }
}

/// Why no hello can be awaited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("The hello of the instance ({WAIT_FOR_HELLO}) cannot be awaited: {0}")]
pub struct HelloError(String);

impl HelloError {
    /// It cannot for this reason.
    pub fn because(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

impl Hello {
    /// The hello that a deployment of this `instance_info` awaits. What cannot be understood was refused with the request;
    /// should it get past that, it asks for one: no deployment may count as done without a hello that was wanted.
    pub fn wanted(instance_info: &Map<String, Value>) -> Option<Self> {
        let limit_s = seconds(instance_info).unwrap_or(Some(DEFAULT_S))?;
        Some(Self { nonce: HelloNonce::fresh(), limit_s, heard_at: None })
    }

    /// For how long it is awaited.
    pub fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_s)
    }

    /// Vendor data that make cloud-init request the URL, and send nothing with it. It tries for as long as the hello is
    /// awaited, so that it outlasts a restart of the controller.
    ///
    /// # Errors
    /// No URL can be made.
    pub fn vendor_data(&self, base_url: &str) -> Result<Value, HelloError> {
        let nonce = self.nonce.expose();
        if base_url.is_empty() || nonce.is_empty() {
            return Err(HelloError::because("the controller can make no URL for it"));
        }
        let tries = (self.limit_s / TRY_S).max(TRIES_MIN);
        let url = format!("{base_url}/hello/{nonce}");
        let config = json!({"phone_home": {"url": url, "post": [], "tries": tries}});
        // JSON is YAML.
        Ok(json!({"cloud-init": format!("#cloud-config\n{config}\n")}))
    }
}

/// For how many seconds a hello is to be awaited; `None`: it is not.
///
/// # Errors
/// The value is neither a boolean nor a number of seconds that is possible.
pub fn seconds(instance_info: &Map<String, Value>) -> Result<Option<u64>, HelloError> {
    let named = match instance_info.get(WAIT_FOR_HELLO) {
        None | Some(Value::Null | Value::Bool(false)) => return Ok(None),
        Some(Value::Bool(true)) => return Ok(Some(DEFAULT_S)),
        Some(Value::Number(number)) => number.as_u64(),
        // Clients of Ironic send what stands on their command line as text.
        Some(Value::String(text)) => match text.to_ascii_lowercase().as_str() {
            "false" => return Ok(None),
            "true" => return Ok(Some(DEFAULT_S)),
            text => text.parse().ok(),
        },
        Some(_) => None,
    };
    match named.filter(|seconds| POSSIBLE_S.contains(seconds)) {
        Some(seconds) => Ok(Some(seconds)),
        None => {
            let (first, last) = (POSSIBLE_S.start(), POSSIBLE_S.end());
            Err(HelloError::because(&format!(
                "its value is neither true nor a number of seconds from {first} to {last}"
            )))
        }
    }
}

/// Whether the request for a hello can be put next to this configuration drive, and cloud-init follows it: what a user says of
/// `phone_home` takes precedence over vendor data.
///
/// # Errors
/// Why not. Quotes nothing of the drive.
pub fn check_drive(drive: Option<&Value>) -> Result<(), HelloError> {
    let parts = match drive {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::String(text)) if text.is_empty() => return Ok(()),
        Some(Value::String(text)) if text.contains("://") => {
            return Err(HelloError::because("the configdrive is a URL; give its parts instead"));
        }
        Some(Value::Object(parts)) => parts,
        Some(_) => {
            return Err(HelloError::because(
                "the configdrive is a ready-made ISO image; give its parts instead",
            ));
        }
    };
    for part in ["user_data", "vendor_data"] {
        let text = match parts.get(part) {
            None => continue,
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        if text.contains("phone_home") {
            return Err(HelloError::because(&format!(
                "the {part} of the configdrive has a phone_home of its own"
            )));
        }
        if part == "user_data" && text.lines().any(|line| line.starts_with("vendor_data:")) {
            return Err(HelloError::because(
                "the user_data of the configdrive says what becomes of vendor data",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "hello_tests.rs"]
mod tests;
