//! Writing nodes: read, decide, write at the version read, and once more when somebody else was faster.

use crate::call::Call;
use crate::error::ApiError;
use model::{Event, Node};
use std::time::Duration;
use store::{StoreError, log_events};

/// Pauses before another try. Conductors write between two reads of the API only for moments.
const PAUSES_MS: [u64; 5] = [5, 20, 60, 150, 300];

/// Change a node. `decide` may be called several times, each time with the node as it is then; what it
/// refuses is refused at once and changes nothing.
pub async fn change(
    call: &Call,
    ident: &str,
    decide: impl Fn(&Node) -> Result<(Node, Vec<Event>), ApiError> + Send + Sync,
) -> Result<Node, ApiError> {
    attempt(call, ident, false, decide).await
}

/// As [`change`], and only while no conductor works on the node: 409 that names it when it goes on for long.
pub async fn change_unlocked(
    call: &Call,
    ident: &str,
    decide: impl Fn(&Node) -> Result<(Node, Vec<Event>), ApiError> + Send + Sync,
) -> Result<Node, ApiError> {
    attempt(call, ident, true, decide).await
}

async fn attempt(
    call: &Call,
    ident: &str,
    unlocked: bool,
    decide: impl Fn(&Node) -> Result<(Node, Vec<Event>), ApiError> + Send + Sync,
) -> Result<Node, ApiError> {
    let mut node = call.node(ident).await?;
    let uuid = node.uuid;
    for pause in PAUSES_MS {
        let (mut changed, events) = decide(&node)?;
        if !(unlocked && is_locked(call, &node).await?) {
            changed.updated_at = Some(call.now());
            let events = call.caused(events);
            match call.app.store.update_node(changed, events.clone(), None).await {
                Ok(node) => {
                    log_events(&node, &events);
                    return Ok(node);
                }
                Err(StoreError::Stale(_)) => {}
                Err(other) => return Err(other.into()),
            }
        }
        tokio::time::sleep(Duration::from_millis(pause)).await;
        node = call.app.store.node(uuid).await?;
    }
    Err(busy(call, &node).await)
}

/// Remove a node that `check` lets go, and on which no conductor works: it must not vanish under the hands of
/// one that switches it on or off.
pub async fn delete(
    call: &Call,
    ident: &str,
    check: impl Fn(&Node) -> Result<(), ApiError> + Send + Sync,
) -> Result<(), ApiError> {
    let mut node = call.node(ident).await?;
    let uuid = node.uuid;
    for pause in PAUSES_MS {
        check(&node)?;
        if !is_locked(call, &node).await? {
            match call.app.store.delete_node(uuid, node.version).await {
                Ok(()) => return Ok(()),
                Err(StoreError::Stale(_)) => {}
                Err(other) => return Err(other.into()),
            }
        }
        tokio::time::sleep(Duration::from_millis(pause)).await;
        node = call.app.store.node(uuid).await?;
    }
    Err(busy(call, &node).await)
}

/// 409 while a conductor works on the node: what goes out to its BMC now would come between.
pub async fn needs_unlocked(call: &Call, node: &Node) -> Result<(), ApiError> {
    match call.app.store.lease_holder(node.uuid, call.now()).await? {
        Some(holder) => Err(ApiError::locked(node.uuid, &holder)),
        None => Ok(()),
    }
}

async fn is_locked(call: &Call, node: &Node) -> Result<bool, ApiError> {
    Ok(call.app.store.lease_holder(node.uuid, call.now()).await?.is_some())
}

/// 409 that names who works on the node.
async fn busy(call: &Call, node: &Node) -> ApiError {
    match call.app.store.lease_holder(node.uuid, call.now()).await {
        Ok(Some(holder)) => ApiError::locked(node.uuid, &holder),
        Ok(None) => StoreError::Stale(node.uuid).into(),
        Err(error) => error.into(),
    }
}
