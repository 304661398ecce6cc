//! `/v1/ports`, and the ports of a node.

pub mod list;
mod view;
mod write;

pub use list::FILTERS;
pub use view::FIELDS;

use crate::call::{Call, json};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use axum::extract::Path;
use model::Port;
use serde_json::Value;
use store::StoreError;
use uuid::Uuid;

/// What is served of ports.
pub fn endpoints() -> Vec<Endpoint> {
    rows![
        GET "/v1/ports" 1 "baremetal:port:list_all", "ports, a page of them" => list::list;
        POST "/v1/ports" 1 "baremetal:port:create", "add a port" => write::create;
        GET "/v1/ports/detail" 1 "baremetal:port:list_all", "ports with all fields" => list::detail;
        GET "/v1/ports/{ident}" 1 "baremetal:port:get", "a port" => show;
        PATCH "/v1/ports/{ident}" 1 "baremetal:port:update", "change fields of a port" => write::patch;
        DELETE "/v1/ports/{ident}" 1 "baremetal:port:delete", "remove a port" => write::delete;
        GET "/v1/nodes/{ident}/ports" 1 "baremetal:port:list", "ports of a node" => list::of_node;
        GET "/v1/nodes/{ident}/ports/detail" 1 "baremetal:port:list", "the same with all fields"
            => list::of_node_detail;
        GET "/v1/portgroups/{ident}/ports" 24 "baremetal:port:list", "ports of a port group" => list::of_portgroup;
        GET "/v1/portgroups/{ident}/ports/detail" 24 "baremetal:port:list", "the same with all fields"
            => list::of_portgroup_detail;
    ]
}

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
