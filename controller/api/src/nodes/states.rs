//! `GET /v1/nodes/{ident}/states`.

use crate::call::{Call, json};
use crate::error::Reply;
use crate::view::NodeView;
use axum::extract::Path;
use serde_json::{Map, Value};

/// Fields of the answer, with the minor version since which each exists.
pub const SINCE: [(&str, u16); 11] = [
    ("console_enabled", 1),
    ("last_error", 1),
    ("power_state", 1),
    ("provision_state", 1),
    ("provision_updated_at", 1),
    ("target_power_state", 1),
    ("target_provision_state", 1),
    ("raid_config", 12),
    ("target_raid_config", 12),
    ("boot_mode", 75),
    ("secure_boot", 75),
];

/// `GET /v1/nodes/{ident}/states`.
pub async fn states(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let node = call.node(&ident).await?;
    let shown = NodeView::gather(&call, node, Some(&[])).await?;
    let states: Map<_, _> = SINCE
        .into_iter()
        .filter(|(_, since)| call.version.has(*since))
        .map(|(name, _)| (name.to_owned(), shown.field(&call.app, call.version, name)))
        .collect();
    Ok(json(200, &Value::Object(states)))
}
