//! Ports: the NICs of a node. Agents find their node by the addresses of its ports.

use crate::resource::{Resource, ResourceKind};
use crate::time::Timestamp;
use mac::Mac;
use serde_json::Value;
use uuid::Uuid;

impl Resource {
    /// A port of `node`. No two ports have the same address, so it is also the key.
    pub fn port(uuid: Uuid, node: Uuid, address: Mac, now: Timestamp) -> Self {
        let mut port = Self { node: Some(node), ..Self::new(ResourceKind::Port, uuid, now) };
        port.set_address(address);
        port
    }

    /// The MAC address of a port, in lower case with colons.
    pub fn address(&self) -> &str {
        self.key.as_deref().unwrap_or_default()
    }

    /// Give a port this MAC address.
    pub fn set_address(&mut self, address: Mac) {
        self.key = Some(address.to_string());
        self.fields.insert("address".to_owned(), address.to_string().into());
    }

    /// Whether the node boots by this port; true unless a client or an inspection has set it to false.
    pub fn pxe_enabled(&self) -> bool {
        self.field("pxe_enabled") != &Value::Bool(false)
    }

    /// This port, with whether the node boots by it.
    pub fn with_pxe(mut self, enabled: bool) -> Self {
        if self.pxe_enabled() != enabled {
            self.fields.insert("pxe_enabled".to_owned(), enabled.into());
        }
        self
    }
}
