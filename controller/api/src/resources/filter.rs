//! Filters of lists that several kinds of resources have.

use crate::call::Call;
use crate::error::ApiError;
use crate::fields;
use mac::Mac;
use model::Resource;
use std::collections::BTreeSet;
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

/// Those of nodes in one of the shards or, if the query names none, in one of the conductor groups it asks for.
pub async fn in_nodes_asked(call: &Call, mut found: Vec<Resource>) -> Result<Vec<Resource>, ApiError> {
    let mut filters = [("shard", "shard"), ("conductor_groups", "conductor_group")].into_iter();
    let Some((field, wanted)) = filters.find_map(|(arg, field)| Some((field, call.args.list(arg)?))) else {
        return Ok(found);
    };
    let mut nodes = call.app.store.nodes().await?;
    nodes.retain(|node| {
        let value = fields::read(node, field);
        value.as_str().is_some_and(|value| wanted.contains(&value.to_lowercase()))
    });
    let inside: BTreeSet<Uuid> = nodes.iter().map(|node| node.uuid).collect();
    found.retain(|resource| resource.node.is_some_and(|node| inside.contains(&node)));
    Ok(found)
}
