//! `/v1/nodes/{ident}/vifs`. The network interface of every node is `noop`: requests to attach and to detach are
//! checked as Ironic checks them, answered with 204 and not stored. The list is always empty.

use crate::args::is_logical_name;
use crate::body;
use crate::call::{Call, empty, json};
use crate::error::{ApiError, Reply};
use crate::schema;
use axum::extract::Path;
use serde_json::{Value, json};
use uuid::Uuid;

/// What docs/compatibility.md says of these endpoints.
pub const NOOP: &str =
    "the network interface of every node is `noop`, so nodes are never attached to a virtual network";

/// Return an empty list, or 404 when there is no such node.
pub async fn list(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has_path(28)?;
    call.args.only(&[])?;
    call.node(&ident).await?;
    Ok(json(200, &json!({"vifs": []})))
}

/// Check a request to attach. Like Ironic's `noop` interface it does not look whether the port exists.
pub async fn attach(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has_path(28)?;
    call.args.only(&[])?;
    let given = call.json()?;
    let Value::Object(vif) = &given else {
        return Err(schema::wrong_type("vif", &given, "'object'"));
    };
    if !vif.contains_key("id") {
        return Err(ApiError::invalid("Schema error for vif: 'id' is a required property"));
    }
    check_ident("id", body::required(vif, "id")?)?;
    call.node(&ident).await?;
    if call.version.has(67) && vif.contains_key("port_uuid") && vif.contains_key("portgroup_uuid") {
        return Err(ApiError::invalid("Cannot specify both port_uuid and portgroup_uuid"));
    }
    Ok(empty(204, None))
}

/// Check a request to detach.
pub async fn detach(Path((ident, vif)): Path<(String, String)>, call: Call) -> Reply {
    call.version.has_path(28)?;
    call.args.only(&[])?;
    check_ident("vif_id", &vif)?;
    call.node(&ident).await?;
    Ok(empty(204, None))
}

fn check_ident(name: &str, text: &str) -> Result<(), ApiError> {
    if Uuid::parse_str(text).is_ok() || is_logical_name(text) {
        return Ok(());
    }
    Err(ApiError::invalid(format!("Expected UUID or name for {name}: {text}")))
}
