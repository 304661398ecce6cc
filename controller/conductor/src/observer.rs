//! Hears what a conductor did, to measure it. Nothing that a conductor does depends on it.

use model::Node;
use std::time::Duration;

/// Hears what a conductor did.
pub trait Observer: Send + Sync {
    /// A pass over a node has ended. It waited so long for its place, and took so long.
    fn pass_ended(&self, waited: Duration, took: Duration, panicked: bool);

    /// A change of a node was stored.
    fn stored(&self, before: &Node, after: &Node);
}
