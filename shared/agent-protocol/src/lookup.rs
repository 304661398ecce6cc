//! `GET /v1/lookup?addresses=<mac>,<mac>[&node_uuid=<uuid>]`: the agent asks which node it is.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The whole answer of a lookup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LookupAnswer {
    /// The node that owns the addresses.
    pub node: LookupNode,
    /// How the agent is to behave.
    pub config: LookupConfig,
}

/// The part of the node an agent is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LookupNode {
    /// UUID of the node.
    pub uuid: String,
    /// `node.properties`.
    #[serde(default)]
    pub properties: Map<String, Value>,
    /// `node.instance_info`, secrets masked.
    #[serde(default)]
    pub instance_info: Map<String, Value>,
    /// `node.driver_internal_info`, secrets masked.
    #[serde(default)]
    pub driver_internal_info: Map<String, Value>,
    /// Links, as every Ironic resource has.
    #[serde(default)]
    pub links: Vec<Value>,
}

/// Adds to a node's `driver_internal_info` how ironic-python-agent is to erase, at the defaults of Ironic, which stores them
/// there when cleaning begins. What is set already stays. Our agent gets them with a lookup, where
/// the controller does not know yet which agent asks, and not with a command: its defaults are others.
pub fn add_erase_settings(internal: &mut Map<String, Value>) {
    for (key, value) in [
        ("agent_erase_devices_iterations", json!(1)),
        ("agent_erase_devices_zeroize", json!(true)),
        ("agent_continue_if_secure_erase_failed", json!(false)),
        ("agent_continue_if_ata_erase_failed", json!(false)),
        ("agent_enable_ata_secure_erase", json!(true)),
        ("agent_enable_nvme_secure_erase", json!(true)),
        ("agent_erase_skip_read_only", json!(false)),
        ("disk_erasure_concurrency", json!(4)),
    ] {
        internal.entry(key).or_insert(value);
    }
}

/// Settings a controller sends to its agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LookupConfig {
    /// Seconds within which the controller wants to hear the agent again; the agent beats at a random
    /// 0.3 to 0.6 of it.
    pub heartbeat_timeout: f64,
    /// The token; `"******"` when it has already been given to an agent, absent below 1.62.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_token: Option<String>,
    /// Always true today.
    #[serde(default)]
    pub agent_token_required: bool,
    /// Offer of the Anneal extension; absent from Ironic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anneal: Option<Offer>,
    /// Hardware managers that this node is to have; absent when there are none, and from Ironic. In this place, and not
    /// below `anneal`, an ironic-python-agent passes it over like every key that it does not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anneal_bundles: Vec<BundleOffer>,
    /// Everything else a controller sends (metrics, containers, image formats, TLS floor …).
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// "I understand Anneal's fields up to this version."
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Highest [`crate::EXTENSION`] the controller understands.
    pub extension: u32,
}

/// A bundle with a hardware manager, to be fetched by its digest from `GET /v1/anneal/bundles/{digest}/file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleOffer {
    /// Name of the hardware manager.
    pub name: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of the file: 64 hexadecimal digits, lower case.
    pub digest: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Id of the key that has signed it, as the controller found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
}

/// What stands in the place of a secret.
pub const MASKED: &str = "******";
