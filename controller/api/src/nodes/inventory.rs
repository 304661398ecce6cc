//! `GET /v1/nodes/{ident}/inventory`: what the last inspection found.

use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use axum::extract::Path;
use model::mask::masked_value;
use serde_json::json;

/// `GET …/inventory`.
pub async fn show(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has_path(81)?;
    call.args.only(&[])?;
    let node = call.node(&ident).await?;
    let found = call.app.store.inventory(node.uuid).await?.ok_or_else(|| {
        ApiError::client(404, format!("Node inventory record for node {} could not be found.", node.uuid))
    })?;
    let body = json!({
        "inventory": masked_value(&found.inventory),
        "plugin_data": masked_value(&found.plugin_data),
    });
    Ok(json(200, &body))
}
