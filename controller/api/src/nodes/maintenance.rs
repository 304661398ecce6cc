//! `PUT` and `DELETE /v1/nodes/{ident}/maintenance`. Allowed in every state: an operator may always say so.

use super::validation;
use crate::body;
use crate::call::{Call, empty};
use crate::error::Reply;
use crate::write;
use axum::extract::Path;

/// `PUT /v1/nodes/{ident}/maintenance`.
pub async fn set(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&["reason"])?;
    let given = call.arguments(&["reason"])?;
    let reason = body::text(&given, "reason")?.or(call.args.text("reason")).map(str::to_owned);
    change(&call, &ident, true, reason).await
}

/// `DELETE /v1/nodes/{ident}/maintenance`.
pub async fn unset(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    change(&call, &ident, false, None).await
}

async fn change(call: &Call, ident: &str, set: bool, reason: Option<String>) -> Reply {
    write::change(call, ident, |node| {
        let mut node = node.clone();
        node.maintenance = set;
        node.maintenance_reason = reason.clone();
        if !set {
            node.fault = None;
        }
        node.next_wake_at = Some(call.now());
        Ok((node, vec![validation::flag_event("maintenance", set, reason.as_deref(), call.now())]))
    })
    .await?;
    Ok(empty(202, None))
}
