//! Leases on nodes.

use uuid::Uuid;

/// Proof that a conductor was granted a lease on a node. The conductor sends it with every write that it makes under the
/// lease; the store rejects a write whose epoch is not the newest of the node. The store keeps holder and expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// UUID of the node.
    pub node: Uuid,
    /// Fencing number: larger than that of every earlier lease of the node.
    pub epoch: u64,
}
