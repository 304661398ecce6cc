//! `/v1/ports`, and the ports of a node.

mod list;
mod view;
mod write;

pub use list::{detail, list, of_node, of_node_detail};
pub use write::{create, delete, patch};

use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use axum::extract::Path;
use model::Port;
use serde_json::Value;
use store::StoreError;
use uuid::Uuid;

/// `GET /v1/ports/{ident}[?fields=a,b]`.
pub async fn show(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&["fields"])?;
    let wanted = view::wanted(&call)?;
    let port = find(&call, &ident).await?;
    Ok(json(200, &Value::Object(view::view(&port, &call.links, call.version, wanted.as_deref()))))
}

/// The port with this UUID or, since 1.88, name.
async fn find(call: &Call, ident: &str) -> Result<Port, ApiError> {
    let missing = || ApiError::client(404, format!("Port {ident} could not be found."));
    if let Ok(uuid) = Uuid::parse_str(ident) {
        return match call.app.store.port(uuid).await {
            Err(StoreError::NotFound { .. }) => Err(missing()),
            other => Ok(other?),
        };
    }
    if !crate::args::is_logical_name(ident) {
        return Err(ApiError::invalid(format!("Expected UUID or name for port_ident: {ident}")));
    }
    if !call.version.has(88) {
        return Err(missing());
    }
    let ports = call.app.store.ports(None).await?;
    ports.into_iter().find(|port| port.name.as_deref() == Some(ident)).ok_or_else(missing)
}
