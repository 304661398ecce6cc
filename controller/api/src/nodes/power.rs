//! `PUT /v1/nodes/{ident}/states/power`.

use crate::body::{self, python};
use crate::call::{Call, empty};
use crate::error::{ApiError, Reply};
use crate::write;
use axum::extract::Path;
use model::request::{RequestError, apply_power};
use model::{Node, PowerTarget};
use serde_json::Value;
use std::future::ready;

/// `PUT /v1/nodes/{ident}/states/power`. `timeout` (seconds) is checked and not kept: the conductor's own
/// limits hold.
pub async fn power(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let given = call.arguments(&["target", "timeout"])?;
    let target_text = body::required(&given, "target")?;
    let timeout = match given.get("timeout") {
        None | Some(Value::Null) => None,
        Some(value) => Some(
            value.as_i64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok())).ok_or_else(
                || ApiError::invalid(format!("Expected an integer for timeout: {}", python(value))),
            )?,
        ),
    };
    let node = call.node(&ident).await?;
    let target = PowerTarget::parse(target_text);
    if matches!(target, Some(PowerTarget::SoftOff | PowerTarget::SoftReboot)) || timeout.is_some() {
        call.version.needs(27)?;
    }
    if timeout.is_some_and(|timeout| timeout < 1) {
        return Err(ApiError::invalid("timeout has to be positive integer"));
    }
    let Some(target) = target else {
        let state = node.power_state.map_or("None", |state| state.as_str());
        return Err(refused(target_text, &ident, state));
    };
    write::change_after_power(&call, &ident, |node| ready(judge(&call, &ident, &node, target))).await?;
    Ok(empty(202, Some(&call.links.v1(&format!("nodes/{ident}/states")))))
}

/// The node with this change of its power to be carried out. One comes after the other: of two at once, the conductor would send
/// only the first to the BMC.
fn judge(call: &Call, ident: &str, node: &Node, target: PowerTarget) -> Result<write::Change, ApiError> {
    if turns_off(target) && node.never_powers_off() {
        return Err(ApiError::conflict(format!("Failed to set node power state to {}.", target.as_str())));
    }
    apply_power(node, target, call.now()).map_err(|error| match error {
        RequestError::PowerLocked { state, .. } => refused(target.as_str(), ident, state),
        other => ApiError::invalid(other.to_string()),
    })
}

/// Whether this leaves a node without power.
pub(crate) fn turns_off(target: PowerTarget) -> bool {
    matches!(target, PowerTarget::Off | PowerTarget::SoftOff)
}

fn refused(target: &str, node: &str, state: &str) -> ApiError {
    ApiError::invalid(format!(
        "The requested action \"{target}\" can not be performed on node \"{node}\" while it is in state \
         \"{state}\"."
    ))
}
