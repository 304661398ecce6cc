//! `/v1/nodes/{ident}/vifs`. The network interface of every node is `noop`: it accepts attach and detach
//! requests without effect and lists nothing.

use crate::args::is_logical_name;
use crate::body;
use crate::call::{Call, empty, json};
use crate::error::{ApiError, Reply};
use crate::schema;
use axum::extract::Path;
use serde_json::{Value, json};
use uuid::Uuid;

/// Why these rows are no-ops.
pub const NOOP: &str = "nodes are attached to no virtual network: the network interface is noop";

/// `GET …/vifs`.
pub async fn list(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has_path(28)?;
    call.args.only(&[])?;
    call.node(&ident).await?;
    Ok(json(200, &json!({"vifs": []})))
}

/// `POST …/vifs`.
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
    is_ident("id", body::required(vif, "id")?)?;
    call.node(&ident).await?;
    if call.version.has(67) && vif.contains_key("port_uuid") && vif.contains_key("portgroup_uuid") {
        return Err(ApiError::invalid("Cannot specify both port_uuid and portgroup_uuid"));
    }
    Ok(empty(204, None))
}

/// `DELETE …/vifs/{vif}`.
pub async fn detach(Path((ident, vif)): Path<(String, String)>, call: Call) -> Reply {
    call.version.has_path(28)?;
    call.args.only(&[])?;
    is_ident("vif_id", &vif)?;
    call.node(&ident).await?;
    Ok(empty(204, None))
}

fn is_ident(name: &str, text: &str) -> Result<(), ApiError> {
    if Uuid::parse_str(text).is_ok() || is_logical_name(text) {
        return Ok(());
    }
    Err(ApiError::invalid(format!("Expected UUID or name for {name}: {text}")))
}
