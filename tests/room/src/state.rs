//! Provision states without the way there.

use model::{Basis, Node, ProvisionState, Timestamp};

/// Put a node into a state; into AVAILABLE as one whose automated cleaning is switched off.
pub fn put(node: &mut Node, state: ProvisionState, now: Timestamp) {
    match state {
        ProvisionState::Available => node.make_available(Basis::NotCleaned, now),
        other => node.enter(other, None, now),
    }
}
