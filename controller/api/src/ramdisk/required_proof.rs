//! Where a proof of its boot is required of an agent, and what is said of one without it.

use crate::call::Call;
use crate::error::ApiError;
use model::boot_proof;
use model::{Contact, Node};

/// Whether only the agent gets a token of this node whose boot its TPM has proved. A value that is neither true nor false counts
/// as true.
pub fn is_required(call: &Call, node: &Node) -> bool {
    boot_proof::is_required(&node.driver_info, call.app.settings.require_tpm).unwrap_or(true)
}

/// 404 for an agent whose boot is not proved although that is required: it gets neither a token nor a look at the node.
pub async fn check_proved(
    call: &Call,
    node: &Node,
    contact: &Contact,
    boot_id: Option<&str>,
) -> Result<(), ApiError> {
    if !is_required(call, node) || store::contact::is_proved(contact, boot_id) {
        return Ok(());
    }
    let text = format!(
        "an agent at {} was refused a token: the node's TPM has not proved its boot, and that is required",
        place(call)
    );
    remark(call, node, "unproved", &text).await;
    Err(ApiError::not_found())
}

/// Put it into the history of the node, each kind once a minute.
pub async fn remark(call: &Call, node: &Node, kind: &'static str, text: &str) {
    let (store, now) = (&call.unscoped_app.store, call.app.clock.now());
    if let Err(error) = call.app.remarks.note(&**store, node.uuid, kind, text, now).await {
        tracing::warn!(node_uuid = %node.uuid, error = %error.chain(), "cannot store that an agent was refused");
    }
}

/// Where the request came from, in words.
pub fn place(call: &Call) -> String {
    call.client().map_or_else(|| "an unknown address".to_owned(), |client| client.to_string())
}
