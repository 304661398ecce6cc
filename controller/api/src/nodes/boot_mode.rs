//! `PUT /v1/nodes/{ident}/states/boot_mode` and `…/secure_boot`: how the firmware starts, from the next start on.
//!
//! Ironic answers 202 and stores a failure of the BMC in `last_error`; here the BMC is asked first, and a failure is the
//! answer.

use crate::body::{self, python};
use crate::call::{Call, empty};
use crate::error::{ApiError, Reply};
use crate::lock::Lock;
use crate::write;
use axum::extract::Path;
use model::Node;
use model::provision::Budget;
use serde_json::Value;

const MODES: [&str; 2] = ["bios", "uefi"];

/// Minor version since which both exist.
const SINCE: u16 = 76;

/// `PUT …/states/boot_mode`.
pub async fn boot_mode(Path(ident): Path<String>, call: Call) -> Reply {
    let given = call.arguments(&["target"])?;
    let mode = body::required(&given, "target")?;
    let node = ready(&call, &ident).await?;
    if !MODES.contains(&mode) {
        return Err(ApiError::invalid(format!(
            "Invalid boot mode {mode} requested for node. Allowed boot modes are: {}",
            MODES.join(", ")
        )));
    }
    let node = idle(&call, node, "boot mode").await?;
    call.app.drivers.set_boot_mode(&node, mode).await?;
    keep(&call, &ident, "boot_mode", mode.into()).await
}

/// `PUT …/states/secure_boot`.
pub async fn secure_boot(Path(ident): Path<String>, call: Call) -> Reply {
    let given = call.arguments(&["target"])?;
    let target = given
        .get("target")
        .ok_or_else(|| ApiError::invalid("Missing mandatory parameter: target"))
        .and_then(|target| body::boolean("target", target))?;
    let node = ready(&call, &ident).await?;
    let on = target.ok_or_else(|| {
        ApiError::invalid(format!(
            "Invalid secure_boot {} requested for node. Allowed secure_boot states are: True, False",
            python(&Value::Null)
        ))
    })?;
    let node = idle(&call, node, "secure boot state").await?;
    call.app.drivers.set_secure_boot(&node, on).await?;
    keep(&call, &ident, "secure_boot", on.into()).await
}

async fn ready(call: &Call, ident: &str) -> Result<Node, ApiError> {
    call.args.only(&[])?;
    let node = call.node(ident).await?;
    if call.version.has(SINCE) {
        return Ok(node);
    }
    Err(ApiError::client(404, format!("This endpoint is supported starting with the API version 1.{SINCE}")))
}

/// The node once it is not locked: 409 while it is in transition.
async fn idle(call: &Call, node: Node, what: &str) -> Result<Node, ApiError> {
    check_rests(&node, what)?;
    let node = Lock::Held.opened(call, node).await?;
    check_rests(&node, what)?;
    Ok(node)
}

fn check_rests(node: &Node, what: &str) -> Result<(), ApiError> {
    if node.provision_state.budget() == Budget::User {
        return Ok(());
    }
    Err(ApiError::conflict(format!(
        "Node is in {} state. Since node is transitioning, the {what} will not be set as this may interfere with ongoing changes \
         and result in erroneous modification. Try again later.",
        node.provision_state.as_str()
    )))
}

async fn keep(call: &Call, ident: &str, field: &str, value: Value) -> Reply {
    write::change(call, ident, |node| {
        let mut node = node.clone();
        node.other.insert(field.to_owned(), value.clone());
        Ok((node, Vec::new()))
    })
    .await?;
    Ok(empty(202, Some(&call.links.v1(&format!("nodes/{ident}/states")))))
}
