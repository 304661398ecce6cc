//! A network port of a node. Agents find their node by the addresses of its ports.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// A port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Its id.
    pub uuid: Uuid,
    /// The node it belongs to.
    pub node_uuid: Uuid,
    /// MAC address, lower case with colons; unique.
    pub address: String,
    /// Name (1.88).
    #[serde(default)]
    pub name: Option<String>,
    /// Whether the node boots by it (1.19).
    #[serde(default = "yes")]
    pub pxe_enabled: bool,
    /// Free for clients.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// Switch and its port (1.19).
    #[serde(default)]
    pub local_link_connection: Map<String, Value>,
    /// Kept for clients, without meaning here: `physical_network`, `is_smartnic`, `description` …
    #[serde(default)]
    pub other: Map<String, Value>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    #[serde(default)]
    pub updated_at: Option<Timestamp>,
}

fn yes() -> bool {
    true
}

/// The canonical form of a MAC address (lower case, colons), or `None` if it is not one of 6 octets.
pub fn canonical_mac(text: &str) -> Option<String> {
    let lower = text.trim().to_ascii_lowercase().replace('-', ":");
    let octets: Vec<_> = lower.split(':').collect();
    let good = octets.len() == 6
        && octets.iter().all(|octet| octet.len() == 2 && octet.bytes().all(|byte| byte.is_ascii_hexdigit()));
    good.then_some(lower)
}

#[cfg(test)]
mod tests {
    use super::canonical_mac;

    #[test]
    fn a_mac_address_has_six_octets_and_one_canonical_form() {
        assert_eq!(canonical_mac("52-54-00-AA-bb-0C").as_deref(), Some("52:54:00:aa:bb:0c"));
        for bad in ["", "52:54:00:aa:bb", "52:54:00:aa:bb:0c:0d", "52:54:00:aa:bb:g0", "5254.00aa.bb0c"] {
            assert_eq!(canonical_mac(bad), None, "{bad}");
        }
    }
}
