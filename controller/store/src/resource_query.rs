//! One page of a list of resources.

use crate::node_field::{FieldValue, NodeField};
use crate::node_filter::{NodeFilter, contains, is_one_of};
use crate::node_query::NodeQuery;
use crate::place::Place;
use crate::resource_field::ResourceField;
use model::{Node, Resource, ResourceKind};
use std::cmp::Ordering;
use std::time::Duration;
use uuid::Uuid;

/// Conditions of a list of resources. All must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceFilter {
    /// What they are.
    pub kind: ResourceKind,
    /// Fields that must have exactly this value; [`FieldValue::Null`]: none.
    pub equal: Vec<(ResourceField, FieldValue)>,
    /// A field of the node they belong to, whose text, in lower case, must be one of these.
    pub node_one_of: Option<(NodeField, Vec<String>)>,
    /// The project that must see them: that owns or leases their node or, for allocations and runbooks, owns them. Chassis,
    /// deploy templates and inspection rules belong to no project and are seen by all.
    pub project: Option<String>,
    /// Text, in lower case, that the description must contain in any letter case. No index helps, as for nodes.
    pub description_contains: Option<String>,
}

/// How resources of a kind belong to projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// They belong to none: all see them.
    NoProject,
    /// To the project in their field `owner`.
    OwnerField,
    /// To the projects that own or lease their node.
    ProjectsOfNode,
}

impl Ownership {
    /// How resources of this kind belong to projects.
    pub fn of(kind: ResourceKind) -> Self {
        match kind {
            ResourceKind::Chassis | ResourceKind::DeployTemplate | ResourceKind::InspectionRule => {
                Self::NoProject
            }
            ResourceKind::Allocation | ResourceKind::Runbook => Self::OwnerField,
            ResourceKind::Port
            | ResourceKind::Portgroup
            | ResourceKind::VolumeConnector
            | ResourceKind::VolumeTarget => Self::ProjectsOfNode,
        }
    }
}

impl ResourceFilter {
    /// All of a kind.
    pub fn all(kind: ResourceKind) -> Self {
        Self { kind, equal: Vec::new(), node_one_of: None, project: None, description_contains: None }
    }

    /// Those of a kind that belong to a node.
    pub fn of_node(kind: ResourceKind, node: Uuid) -> Self {
        Self::all(kind).with(ResourceField::Node, FieldValue::Text(node.to_string()))
    }

    /// The same filter for resources with this value in a field.
    #[must_use]
    pub fn with(mut self, field: ResourceField, value: FieldValue) -> Self {
        self.equal.push((field, value));
        self
    }

    /// Whether a resource, which belongs to `node` if to any, is shown.
    pub fn matches(&self, resource: &Resource, node: Option<&Node>) -> bool {
        let seen_by = |project: &String| match Ownership::of(self.kind) {
            Ownership::NoProject => true,
            Ownership::OwnerField => ResourceField::Owner.read(resource) == FieldValue::Text(project.clone()),
            Ownership::ProjectsOfNode => {
                node.is_some_and(|node| NodeFilter::default().within(project).matches(node))
            }
        };
        resource.kind == self.kind
            && self.equal.iter().all(|(field, value)| field.read(resource) == *value)
            && self
                .node_one_of
                .as_ref()
                .is_none_or(|(field, wanted)| node.is_some_and(|node| is_one_of(&field.read(node), wanted)))
            && self.project.as_ref().is_none_or(seen_by)
            && self
                .description_contains
                .as_ref()
                .is_none_or(|part| resource.text("description").is_some_and(|text| contains(text, part)))
    }
}

/// Which page of which list; the order is that of [`Place::order`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceQuery {
    /// Which resources.
    pub filter: ResourceFilter,
    /// The field that they are sorted by.
    pub sort: Option<ResourceField>,
    /// Whether the largest comes first.
    pub descending: bool,
    /// The place of the last resource of the page before, which need not match the filter any more.
    pub after: Option<Place>,
    /// Most resources of the page.
    pub limit: usize,
    /// How long the database may look for them; for filters that no index serves.
    pub time_limit: Duration,
}

/// A page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourcePage {
    /// The resources.
    pub resources: Vec<Resource>,
    /// Whether there are more.
    pub more: bool,
}

impl ResourceQuery {
    /// The first `limit` resources that match, in the order of creation.
    pub fn first(limit: usize, filter: ResourceFilter) -> Self {
        let time_limit = NodeQuery::TIME_LIMIT;
        Self { filter, sort: None, descending: false, after: None, limit, time_limit }
    }

    /// The page of these resources, which are all there are; `node` finds a node. Every store gives the same.
    pub fn page_of<'a>(
        &self,
        resources: impl IntoIterator<Item = &'a Resource>,
        node: impl Fn(Uuid) -> Option<&'a Node>,
    ) -> ResourcePage {
        let order = |one: &Place, other: &Place| one.order(other, self.sort.is_some(), self.descending);
        let mut found: Vec<_> = resources
            .into_iter()
            .filter(|resource| self.filter.matches(resource, resource.node.and_then(&node)))
            .map(|resource| (Place::of_resource(resource, self.sort), resource))
            .collect();
        if let Some(after) = &self.after {
            found.retain(|(place, _)| order(place, after) == Ordering::Greater);
        }
        found.sort_by(|(one, _), (other, _)| order(one, other));
        let more = found.len() > self.limit;
        let resources = found.into_iter().take(self.limit).map(|(_, resource)| resource.clone()).collect();
        ResourcePage { resources, more }
    }
}
