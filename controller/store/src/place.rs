//! The place of an item in a list.

use crate::node_field::{FieldValue, NodeField};
use crate::resource_field::ResourceField;
use model::{Node, Resource, Timestamp};
use std::cmp::Ordering;
use uuid::Uuid;

/// The place of an item in a list. The page after it begins there, whether or not the item still is in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its value in the field that the list is sorted by; null if there is none.
    pub value: FieldValue,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its UUID.
    pub uuid: Uuid,
}

impl Place {
    /// The place of a node in a list that is sorted by this field.
    pub fn of_node(node: &Node, sort: Option<NodeField>) -> Self {
        let value = sort.map_or(FieldValue::Null, |field| field.read(node));
        Self { value, created_at: node.created_at, uuid: node.uuid }
    }

    /// The place of a resource in a list that is sorted by this field.
    pub fn of_resource(resource: &Resource, sort: Option<ResourceField>) -> Self {
        let value = sort.map_or(FieldValue::Null, |field| field.read(resource));
        Self { value, created_at: resource.created_at, uuid: resource.uuid }
    }

    /// Which of two places comes first. Without a field to sort by, items are in the order of creation, then of UUIDs, and
    /// `descending` turns that whole order around. Among items of equal values in the field this order remains, also in
    /// a descending list.
    pub fn order(&self, other: &Self, sorted: bool, descending: bool) -> Ordering {
        let created = (self.created_at, self.uuid).cmp(&(other.created_at, other.uuid));
        let turned = |order: Ordering| if descending { order.reverse() } else { order };
        if sorted { turned(self.value.cmp(&other.value)).then(created) } else { turned(created) }
    }
}
