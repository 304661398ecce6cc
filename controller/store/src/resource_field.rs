//! Fields of a resource that lists are filtered and sorted by within the store.

use crate::node_field::FieldValue;
use model::Resource;
use serde_json::Value;

/// A field of a resource. A store keeps an index for each, so a list that is filtered or sorted by one reads only what it
/// shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceField {
    /// `uuid`.
    Uuid,
    /// `created_at`.
    CreatedAt,
    /// `name`.
    Name,
    /// `node_uuid`.
    Node,
    /// `address`, a MAC address.
    Address,
    /// `portgroup_uuid`.
    Portgroup,
    /// `owner`.
    Owner,
    /// `resource_class`.
    ResourceClass,
    /// `state`.
    State,
}

impl ResourceField {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Uuid,
        Self::CreatedAt,
        Self::Name,
        Self::Node,
        Self::Address,
        Self::Portgroup,
        Self::Owner,
        Self::ResourceClass,
        Self::State,
    ];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uuid => "uuid",
            Self::CreatedAt => "created_at",
            Self::Name => "name",
            Self::Node => "node_uuid",
            Self::Address => "address",
            Self::Portgroup => "portgroup_uuid",
            Self::Owner => "owner",
            Self::ResourceClass => "resource_class",
            Self::State => "state",
        }
    }

    /// The field of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }

    /// The value that a resource has in it.
    pub fn read(self, resource: &Resource) -> FieldValue {
        let text = |text: Option<&str>| text.map_or(FieldValue::Null, FieldValue::from);
        match self {
            Self::Uuid => FieldValue::Text(resource.uuid.to_string()),
            Self::CreatedAt => FieldValue::Number(resource.created_at.0),
            Self::Name => text(resource.name.as_deref()),
            Self::Node => resource.node.map_or(FieldValue::Null, |node| FieldValue::Text(node.to_string())),
            Self::Address | Self::Portgroup | Self::Owner | Self::ResourceClass | Self::State => {
                text(resource.fields.get(self.name()).and_then(Value::as_str))
            }
        }
    }
}
