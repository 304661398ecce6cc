//! One power-on of a node into the ramdisk, and the secret that shows that an agent runs in it.

use crate::medium_content::MediumContent;
pub use crate::ramdisk_agent::{AGENT_KIND, RamdiskAgent};
use mac::Mac;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use uuid::Uuid;

/// Most MAC addresses of fetches that are remembered: more than a server has NICs that boot.
const MACS_MAX: usize = 64;

/// A boot of the node that the controller ordered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    /// Given out with the boot script.
    pub nonce: BootNonce,
    /// What ended the boot before it.
    #[serde(default)]
    pub start: BootStart,
    /// Where the boot script, or by HTTP boot the medium, was fetched from first; `None` while no client has fetched it.
    #[serde(default)]
    pub fetched_from: Option<IpAddr>,
    /// The address of the BMC from which the boot medium was read first; `None` while it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium_read_by: Option<IpAddr>,
    /// What its boot medium carries, from the first read on until the agent is heard; the same for every read, whichever controller
    /// serves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium: Option<Box<MediumContent>>,
    /// MAC addresses that the script was fetched for.
    #[serde(default)]
    pub macs: Vec<Mac>,
    /// Whether the agent that got the token showed the nonce. Its heartbeats must show it, too.
    #[serde(default)]
    pub shown: bool,
}

/// What ended everything that ran on the node before a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BootStart {
    /// The BMC reported that the node was off.
    #[default]
    OffObserved,
    /// The BMC accepted a reset, because the node is never powered off or its BMC reports no power state. The boot has begun
    /// when a client has fetched the boot script since.
    ResetAccepted,
}

/// A value that only the boot script of one boot contains. A secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootNonce(String);

impl Boot {
    /// A boot after an observed power-off, whose script no client has fetched yet.
    pub fn fresh() -> Self {
        Self::after(BootStart::OffObserved)
    }

    /// A boot that begins like this, whose script no client has fetched yet.
    pub fn after(start: BootStart) -> Self {
        let nonce = BootNonce::fresh();
        Self {
            nonce,
            start,
            fetched_from: None,
            medium_read_by: None,
            medium: None,
            macs: Vec::new(),
            shown: false,
        }
    }

    /// Whether what ran before is known to have ended: the node was seen off, or its boot script was fetched after the reset.
    pub fn has_begun(&self) -> bool {
        self.start == BootStart::OffObserved || self.fetched_from.is_some()
    }

    /// Remember that the script was fetched for this MAC address, or the medium by a firmware that names none. False if that
    /// was known.
    pub fn note_fetch(&mut self, mac: Option<Mac>, from: IpAddr) -> bool {
        let is_first = self.fetched_from.is_none();
        self.fetched_from.get_or_insert(from);
        let new = mac.filter(|mac| !self.macs.contains(mac) && self.macs.len() < MACS_MAX);
        self.macs.extend(new);
        is_first || new.is_some()
    }
}

impl BootNonce {
    /// A new one: 64 hexadecimal digits with 244 bits of the operating system's randomness, which fit into a URL and a
    /// kernel argument.
    pub fn fresh() -> Self {
        Self(format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()))
    }

    /// What a request shows as its nonce.
    pub fn shown(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The secret, for the boot script and for comparisons in constant time.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for BootNonce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BootNonce(******)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_new_each_time_and_not_shown() {
        let (first, second) = (BootNonce::fresh(), BootNonce::fresh());
        assert_ne!(first, second);
        assert_eq!(first.expose().len(), 64);
        assert!(first.expose().bytes().all(|byte| byte.is_ascii_hexdigit()));
        let boot = Boot { nonce: first.clone(), ..Boot::fresh() };
        assert!(!format!("{boot:?}").contains(first.expose()));
    }

    #[test]
    fn a_reset_stands_for_an_off_once_the_script_was_fetched() {
        assert!(Boot::fresh().has_begun());
        let mut boot = Boot::after(BootStart::ResetAccepted);
        assert!(!boot.has_begun());
        assert!(boot.note_fetch(Some(Mac::new([2, 0, 0, 0, 0, 1])), [192, 0, 2, 1].into()));
        assert!(boot.has_begun());
        // A boot that an earlier version stored was ordered after an observed power-off.
        let stored: Boot = serde_json::from_value(serde_json::json!({"nonce": "x"})).unwrap();
        assert_eq!(stored.start, BootStart::OffObserved);
    }
}
