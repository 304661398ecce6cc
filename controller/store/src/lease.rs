//! Leases on nodes.

use uuid::Uuid;

/// A lease on a node, held by one conductor for a limited time. Every write under it carries its epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The node.
    pub node: Uuid,
    /// Fencing epoch: larger than that of every earlier lease of the node.
    pub epoch: u64,
}
