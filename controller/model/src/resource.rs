//! What the API stores for clients besides nodes: chassis, ports, port groups, volumes, allocations, runbooks,
//! deploy templates, inspection rules. [`Resource`] has what they have in common, its `fields` what clients write of
//! each.

use crate::node::Node;
use crate::table;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// What a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// A group of nodes.
    Chassis,
    /// A NIC of a node.
    Port,
    /// Ports of a node that are bonded.
    Portgroup,
    /// What a node reaches remote volumes by: an IQN, a WWPN.
    VolumeConnector,
    /// A remote volume of a node.
    VolumeTarget,
    /// A request for a node, and the node that it got.
    Allocation,
    /// Steps of cleaning or service under a name.
    Runbook,
    /// Deploy steps under the name of a trait.
    DeployTemplate,
    /// What to do with what an inspection found.
    InspectionRule,
}

/// Every kind with its name in the database, and as messages call one that is not found.
const KINDS: [(ResourceKind, (&str, &str)); 9] = [
    (ResourceKind::Chassis, ("chassis", "Chassis")),
    (ResourceKind::Port, ("port", "Port")),
    (ResourceKind::Portgroup, ("portgroup", "Portgroup")),
    (ResourceKind::VolumeConnector, ("volume_connector", "Volume connector")),
    (ResourceKind::VolumeTarget, ("volume_target", "Volume target")),
    (ResourceKind::Allocation, ("allocation", "Allocation")),
    (ResourceKind::Runbook, ("runbook", "Runbook")),
    (ResourceKind::DeployTemplate, ("deploy_template", "Deploy template")),
    (ResourceKind::InspectionRule, ("inspection_rule", "Rule")),
];

impl ResourceKind {
    /// Every kind.
    pub const ALL: [Self; 9] = table::keys(KINDS);

    /// As it is stored: `volume_target`.
    pub fn as_str(self) -> &'static str {
        let (_, (stored, _)) = KINDS[self as usize];
        stored
    }

    /// As messages call one that is not found: `Volume target`.
    pub fn noun(self) -> &'static str {
        let (_, (_, noun)) = KINDS[self as usize];
        noun
    }
}

/// A resource. Every write names the `version` it was read at and makes it one larger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// What it is.
    pub kind: ResourceKind,
    /// Its id, unique within its kind.
    pub uuid: Uuid,
    /// Name, unique within its kind.
    #[serde(default)]
    pub name: Option<String>,
    /// The node it belongs to, and goes with.
    #[serde(default)]
    pub node: Option<Uuid>,
    /// Something else that no two of a kind may share: the MAC address of a port, the boot index of a volume
    /// of a node.
    #[serde(default)]
    pub key: Option<String>,
    /// What clients write, by its name on the wire.
    #[serde(default)]
    pub fields: Map<String, Value>,
    /// Count of writes; guards against lost updates. Never on the wire.
    #[serde(default)]
    pub version: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    #[serde(default)]
    pub updated_at: Option<Timestamp>,
}

impl Resource {
    /// One without anything in it.
    pub fn new(kind: ResourceKind, uuid: Uuid, now: Timestamp) -> Self {
        Self {
            kind,
            uuid,
            name: None,
            node: None,
            key: None,
            fields: Map::new(),
            version: 0,
            created_at: now,
            updated_at: None,
        }
    }

    /// A field; null when it was never written.
    pub fn field(&self, name: &str) -> &Value {
        self.fields.get(name).unwrap_or(&Value::Null)
    }

    /// The text of a field, if it holds one.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.field(name).as_str()
    }

    /// The node that the bell rings for when this is written: that of a port. Nothing waits for the other kinds.
    pub fn rings_for(&self) -> Option<Uuid> {
        self.node.filter(|_| self.kind == ResourceKind::Port)
    }

    /// Whether it goes when its node is written as `node`: an allocation lasts as long as the node holds the
    /// instance of the same UUID, so freeing the node also ends the allocation.
    pub fn ends_with(&self, node: &Node) -> bool {
        self.kind == ResourceKind::Allocation
            && self.node == Some(node.uuid)
            && node.instance_uuid != Some(self.uuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_stored_under_their_names() {
        for kind in ResourceKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }

    #[test]
    fn a_resource_is_stored_as_this() {
        let mut resource = Resource::new(ResourceKind::VolumeTarget, Uuid::nil(), Timestamp(5));
        resource.node = Some(Uuid::nil());
        resource.fields.insert("boot_index".into(), 0.into());
        let nil = "00000000-0000-0000-0000-000000000000";
        let frozen = format!(
            r#"{{"kind":"volume_target","uuid":"{nil}","name":null,"node":"{nil}","key":null,"fields":{{"boot_index":0}},"version":0,"created_at":5,"updated_at":null}}"#
        );
        assert_eq!(serde_json::to_string(&resource).unwrap(), frozen);
        assert_eq!(serde_json::from_str::<Resource>(&frozen).unwrap(), resource);
    }
}
