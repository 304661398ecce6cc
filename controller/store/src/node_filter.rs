//! Which nodes a list shows.

use crate::node_field::{FieldValue, NodeField};
use model::{Node, Timestamp};
use serde_json::Value;

/// Conditions of a list of nodes. All must hold; without any, every node is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeFilter {
    /// Fields that must have exactly this value; [`FieldValue::Null`]: none.
    pub equal: Vec<(NodeField, FieldValue)>,
    /// Fields whose text, in lower case, must be one of these.
    pub one_of: Vec<(NodeField, Vec<String>)>,
    /// Whether the node must have an instance, or must have none.
    pub associated: Option<bool>,
    /// Whether the node must be in a shard, or in none.
    pub sharded: Option<bool>,
    /// Projects each of which must own or lease the node.
    pub projects: Vec<String>,
    /// Text, in lower case, that the description must contain in any letter case. No index helps: every node that the
    /// other conditions let pass is looked at.
    pub description_contains: Option<String>,
    /// Text, in lower case, that name, UUID, instance name or instance UUID must contain, in any letter case of ASCII. No
    /// index helps, but no document is read.
    pub search: Option<String>,
    /// The controller was to look at the node before this time, and has not: [`Node::next_wake_at`].
    pub due_before: Option<Timestamp>,
}

impl NodeFilter {
    /// What a search looks at.
    pub const SEARCHED: [NodeField; 4] =
        [NodeField::Name, NodeField::Uuid, NodeField::InstanceName, NodeField::InstanceUuid];

    /// The same filter for nodes that `project` owns or leases.
    #[must_use]
    pub fn within(mut self, project: &str) -> Self {
        if !self.projects.iter().any(|known| known == project) {
            self.projects.push(project.to_owned());
        }
        self
    }

    /// Whether a node is shown.
    pub fn matches(&self, node: &Node) -> bool {
        let has = |field: NodeField| field.read(node) != FieldValue::Null;
        let same = |wanted: Option<bool>, is: bool| wanted.is_none_or(|wanted| wanted == is);
        let of_project = |project: &String| {
            [NodeField::Owner, NodeField::Lessee]
                .into_iter()
                .any(|field| field.read(node) == FieldValue::Text(project.clone()))
        };
        self.equal.iter().all(|(field, value)| field.read(node) == *value)
            && self.one_of.iter().all(|(field, wanted)| is_one_of(&field.read(node), wanted))
            && same(self.associated, has(NodeField::InstanceUuid))
            && same(self.sharded, has(NodeField::Shard))
            && self.projects.iter().all(of_project)
            && self.description_contains.as_ref().is_none_or(|part| {
                let description = node.other.get("description").and_then(Value::as_str);
                description.is_some_and(|text| contains(text, part))
            })
            && self
                .search
                .as_ref()
                .is_none_or(|part| Self::SEARCHED.into_iter().any(|field| finds(&field.read(node), part)))
            && self.due_before.is_none_or(|time| node.next_wake_at.is_some_and(|due| due < time))
    }
}

/// Whether a text is, in lower case, one of the `wanted`.
pub fn is_one_of(value: &FieldValue, wanted: &[String]) -> bool {
    matches!(value, FieldValue::Text(text) if wanted.contains(&text.to_lowercase()))
}

/// Whether a text contains `part`, which is in lower case, in any letter case.
pub fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(part)
}

/// Whether a value contains `part`, which is in lower case, in any letter case of ASCII.
fn finds(value: &FieldValue, part: &str) -> bool {
    matches!(value, FieldValue::Text(text) if text.to_ascii_lowercase().contains(part))
}
