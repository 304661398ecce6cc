//! No node becomes AVAILABLE in a store without the basis of that.

use crate::error::{Result, StoreError};
use model::{Node, ProvisionState};

/// Refuses a node that would become AVAILABLE without a basis. `stored` reads the state that the node has now, and is asked
/// only where that decides: a node that an earlier version of the controller made available has no basis.
///
/// # Errors
/// [`StoreError::Failed`] for such a node, and what `stored` returns.
pub fn check(node: &Node, stored: impl FnOnce() -> Result<Option<ProvisionState>>) -> Result<()> {
    let available = ProvisionState::Available;
    if node.provision_state != available || node.basis.is_some() || stored()? == Some(available) {
        return Ok(());
    }
    Err(StoreError::failed(format!(
        "internal: node {} was about to become available without a basis",
        node.uuid
    )))
}
