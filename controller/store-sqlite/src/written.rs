//! What a transaction wrote of nodes, for the cache.

use model::agent::Contact;
use model::{Node, Timestamp};
use std::sync::Arc;
use uuid::Uuid;

/// The newest lease of a node: its holder and its end. `None`: there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseState(pub Option<(Arc<str>, Timestamp)>);

impl LeaseState {
    /// The holder at `now`.
    pub fn holder(&self, now: Timestamp) -> Option<&str> {
        self.0.as_ref().filter(|(_, until)| *until > now).map(|(holder, _)| &**holder)
    }
}

/// Something that a transaction wrote, as it stands in the database after its commit. Values come with the bytes that they take in
/// memory.
#[derive(Clone)]
pub enum Written {
    /// A node.
    Node(Uuid, Arc<Node>, usize),
    /// The contact of a node.
    Contact(Uuid, Arc<Contact>, usize),
    /// The lease of a node.
    Lease(Uuid, LeaseState),
    /// All of a node: it was deleted, or the cache does not learn it.
    Unknown(Uuid),
    /// All of all nodes.
    All,
}

impl Written {
    /// The node; `None`: all nodes.
    pub fn node(&self) -> Option<Uuid> {
        match self {
            Self::Node(node, ..) | Self::Contact(node, ..) | Self::Lease(node, _) | Self::Unknown(node) => {
                Some(*node)
            }
            Self::All => None,
        }
    }
}
