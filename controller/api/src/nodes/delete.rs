//! `DELETE /v1/nodes/{ident}`.

use crate::call::{Call, empty};
use crate::error::{ApiError, Reply};
use crate::write;
use axum::extract::Path;
use model::{Node, ProvisionState};

/// States in which a node may be deleted (Ironic's, with `[conductor]allow_deleting_available_nodes`, which
/// is on there as well).
const ALLOWED: [ProvisionState; 4] = [
    ProvisionState::AdoptFail,
    ProvisionState::Enroll,
    ProvisionState::Manageable,
    ProvisionState::Available,
];

/// `DELETE /v1/nodes/{ident}`.
pub async fn delete(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    write::delete(&call, &ident, may_be_deleted).await?;
    Ok(empty(204, None))
}

fn may_be_deleted(node: &Node) -> Result<(), ApiError> {
    if let Some(instance) = node.instance_uuid.filter(|_| !node.maintenance) {
        return Err(ApiError::conflict(format!(
            "Node {} is associated with instance {instance}.",
            node.uuid
        )));
    }
    if node.protected {
        return Err(ApiError::client(
            403,
            format!("Node {} is protected and cannot be undeployed, rebuilt or deleted", node.uuid),
        ));
    }
    if !node.maintenance && !ALLOWED.contains(&node.provision_state) {
        let valid: Vec<_> = ALLOWED.iter().map(|state| format!("'{}'", state.as_str())).collect();
        return Err(ApiError::conflict(format!(
            "Can not delete node \"{}\" while it is in provision state \"{}\". Valid provision states to \
             perform deletion are: \"[{}]\", or set the node into maintenance mode",
            node.uuid,
            node.provision_state.as_str(),
            valid.join(", ")
        )));
    }
    Ok(())
}
