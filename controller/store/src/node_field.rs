//! Fields of a node that lists are filtered and sorted by within the store.

use model::{Node, PowerState};
use serde_json::Value;

/// A value of a field. Nulls come first in an ascending order, then booleans, numbers and texts (by their UTF-8 bytes).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldValue {
    /// No value.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number: an instant in microseconds since 1970-01-01T00:00:00Z.
    Number(i64),
    /// A text.
    Text(String),
}

impl From<&str> for FieldValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A field of a node. A store keeps an index for each, so a list that is filtered or sorted by one reads only what it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeField {
    /// `uuid`.
    Uuid,
    /// `created_at`.
    CreatedAt,
    /// `name`.
    Name,
    /// `instance_uuid`.
    InstanceUuid,
    /// `instance_name`.
    InstanceName,
    /// `driver`.
    Driver,
    /// `resource_class`.
    ResourceClass,
    /// `owner`.
    Owner,
    /// `lessee`.
    Lessee,
    /// `conductor_group`; a node of no group has the empty text.
    ConductorGroup,
    /// `chassis_uuid`.
    ChassisUuid,
    /// `shard`.
    Shard,
    /// `parent_node`.
    ParentNode,
    /// `provision_state`, as clients since 1.39 see it.
    ProvisionState,
    /// `power_state`.
    PowerState,
    /// `fault`.
    Fault,
    /// `maintenance`.
    Maintenance,
    /// `retired`.
    Retired,
}

impl NodeField {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::Uuid,
        Self::CreatedAt,
        Self::Name,
        Self::InstanceUuid,
        Self::InstanceName,
        Self::Driver,
        Self::ResourceClass,
        Self::Owner,
        Self::Lessee,
        Self::ConductorGroup,
        Self::ChassisUuid,
        Self::Shard,
        Self::ParentNode,
        Self::ProvisionState,
        Self::PowerState,
        Self::Fault,
        Self::Maintenance,
        Self::Retired,
    ];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uuid => "uuid",
            Self::CreatedAt => "created_at",
            Self::Name => "name",
            Self::InstanceUuid => "instance_uuid",
            Self::InstanceName => "instance_name",
            Self::Driver => "driver",
            Self::ResourceClass => "resource_class",
            Self::Owner => "owner",
            Self::Lessee => "lessee",
            Self::ConductorGroup => "conductor_group",
            Self::ChassisUuid => "chassis_uuid",
            Self::Shard => "shard",
            Self::ParentNode => "parent_node",
            Self::ProvisionState => "provision_state",
            Self::PowerState => "power_state",
            Self::Fault => "fault",
            Self::Maintenance => "maintenance",
            Self::Retired => "retired",
        }
    }

    /// The field of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }

    /// The value that a node has in it.
    pub fn read(self, node: &Node) -> FieldValue {
        let text = |text: Option<&str>| text.map_or(FieldValue::Null, FieldValue::from);
        match self {
            Self::Uuid => FieldValue::Text(node.uuid.to_string()),
            Self::CreatedAt => FieldValue::Number(node.created_at.0),
            Self::Name => text(node.name.as_deref()),
            Self::InstanceUuid => {
                node.instance_uuid.map_or(FieldValue::Null, |uuid| FieldValue::Text(uuid.to_string()))
            }
            Self::Driver => text(Some(&node.driver)),
            Self::ResourceClass => text(node.resource_class.as_deref()),
            Self::ConductorGroup => match node.other.get(self.name()) {
                None | Some(Value::Null) => text(Some("")),
                Some(group) => text(group.as_str()),
            },
            Self::InstanceName
            | Self::Owner
            | Self::Lessee
            | Self::ChassisUuid
            | Self::Shard
            | Self::ParentNode => text(node.other.get(self.name()).and_then(Value::as_str)),
            Self::ProvisionState => text(Some(node.provision_state.as_str())),
            Self::PowerState => text(node.power_state.map(PowerState::as_str)),
            Self::Fault => text(node.fault.as_deref()),
            Self::Maintenance => FieldValue::Bool(node.maintenance),
            Self::Retired => FieldValue::Bool(node.retired),
        }
    }
}
