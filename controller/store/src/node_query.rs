//! One page of a list of nodes.

use crate::node_field::NodeField;
use crate::node_filter::NodeFilter;
use crate::place::Place;
use model::Node;
use std::cmp::Ordering;
use std::time::Duration;

/// Which page of which list, in the order of [`Place::order`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeQuery {
    /// Which nodes.
    pub filter: NodeFilter,
    /// The field that they are sorted by.
    pub sort: Option<NodeField>,
    /// Whether the largest comes first.
    pub descending: bool,
    /// The place of the last node of the page before, which need not match the filter any more.
    pub after: Option<Place>,
    /// Most nodes of the page.
    pub limit: usize,
    /// How long the database may look for them; for filters that no index serves.
    pub time_limit: Duration,
}

/// A page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodePage {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Whether there are more.
    pub more: bool,
}

impl NodeQuery {
    /// How long the database looks by default.
    pub const TIME_LIMIT: Duration = Duration::from_secs(10);

    /// The first `limit` nodes that match, in the order of creation.
    pub fn first(limit: usize, filter: NodeFilter) -> Self {
        Self { filter, sort: None, descending: false, after: None, limit, time_limit: Self::TIME_LIMIT }
    }

    /// The page of these nodes, which are all there are. Every store gives the same.
    pub fn page_of<'a>(&self, nodes: impl IntoIterator<Item = &'a Node>) -> NodePage {
        let order = |one: &Place, other: &Place| one.order(other, self.sort.is_some(), self.descending);
        let nodes = nodes.into_iter().filter(|node| self.filter.matches(node));
        let mut found: Vec<_> = nodes.map(|node| (Place::of_node(node, self.sort), node)).collect();
        if let Some(after) = &self.after {
            found.retain(|(place, _)| order(place, after) == Ordering::Greater);
        }
        found.sort_by(|(one, _), (other, _)| order(one, other));
        let more = found.len() > self.limit;
        NodePage { nodes: found.into_iter().take(self.limit).map(|(_, node)| node.clone()).collect(), more }
    }
}
