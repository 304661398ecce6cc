//! Filters of lists that several kinds of resources have.

use crate::call::Call;
use crate::error::ApiError;
use mac::Mac;
use store::{FieldValue, NodeField, ResourceField, ResourceFilter};
use uuid::Uuid;

/// The node that a query asks for: `node=name or UUID`.
pub async fn node_asked(call: &Call) -> Result<Option<Uuid>, ApiError> {
    match call.args.text("node") {
        None => Ok(None),
        Some(ident) => Ok(Some(call.node(ident).await?.uuid)),
    }
}

/// The MAC address that a query asks for: `address=`, in any spelling.
pub fn address_asked(call: &Call) -> Result<Option<String>, ApiError> {
    let Some(text) = call.args.text("address") else { return Ok(None) };
    match text.trim().parse::<Mac>() {
        Ok(address) => Ok(Some(address.to_string())),
        Err(_) => Err(ApiError::invalid(format!("Expected valid MAC address for address: {text}"))),
    }
}

/// The filter for those of the node that a query asks for, if it asks for one.
pub async fn of_node_asked(call: &Call, filter: ResourceFilter) -> Result<ResourceFilter, ApiError> {
    Ok(match node_asked(call).await? {
        None => filter,
        Some(node) => filter.with(ResourceField::Node, FieldValue::Text(node.to_string())),
    })
}

/// The filter for those of nodes in one of the shards or, if the query names none, in one of the conductor groups it asks
/// for.
pub fn of_nodes_asked(call: &Call, filter: ResourceFilter) -> ResourceFilter {
    let filters = [("shard", NodeField::Shard), ("conductor_groups", NodeField::ConductorGroup)];
    let asked = filters.into_iter().find_map(|(arg, field)| Some((field, call.args.list(arg)?)));
    ResourceFilter { node_one_of: asked.or(filter.node_one_of), ..filter }
}
