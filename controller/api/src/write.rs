//! Writing nodes: read, judge, write at the version that was read, and start again when another writer was faster.

use crate::call::Call;
use crate::error::ApiError;
use crate::retry::Retry;
use model::{Event, Node};
use std::future::ready;
use store::{StoreError, log_events};

/// A changed node with the events of the change.
pub type Change = (Node, Vec<Event>);

/// Change a node. `judge` is called once for each attempt, with the node as it is then; what it refuses is refused at
/// once and changes nothing.
pub async fn change(
    call: &Call,
    ident: &str,
    judge: impl Fn(&Node) -> Result<Change, ApiError> + Send + Sync,
) -> Result<Node, ApiError> {
    attempt(call, ident, false, |node| ready(judge(&node))).await
}

/// As [`change`], with a `judge` that reads more than the node.
pub async fn change_after_reading<F>(
    call: &Call,
    ident: &str,
    judge: impl Fn(Node) -> F + Send + Sync,
) -> Result<Node, ApiError>
where
    F: Future<Output = Result<Change, ApiError>> + Send,
{
    attempt(call, ident, false, judge).await
}

/// As [`change`], and only while no conductor works on the node: 409 that names the conductor if it does not finish
/// within the attempts.
pub async fn change_unlocked(
    call: &Call,
    ident: &str,
    judge: impl Fn(&Node) -> Result<Change, ApiError> + Send + Sync,
) -> Result<Node, ApiError> {
    attempt(call, ident, true, |node| ready(judge(&node))).await
}

async fn attempt<F>(
    call: &Call,
    ident: &str,
    unlocked: bool,
    judge: impl Fn(Node) -> F + Send + Sync,
) -> Result<Node, ApiError>
where
    F: Future<Output = Result<Change, ApiError>> + Send,
{
    let mut node = call.node(ident).await?;
    let mut retry = Retry::new();
    loop {
        let (mut changed, events) = judge(node.clone()).await?;
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
        if !retry.again().await {
            return Err(busy(call, &node).await);
        }
        node = call.app.store.node(node.uuid).await?;
    }
}

/// Remove a node that `check` accepts and on which no conductor works: it must not disappear while a conductor
/// switches it on or off.
pub async fn delete(
    call: &Call,
    ident: &str,
    check: impl Fn(&Node) -> Result<(), ApiError> + Send + Sync,
) -> Result<(), ApiError> {
    let mut node = call.node(ident).await?;
    let mut retry = Retry::new();
    loop {
        check(&node)?;
        if !is_locked(call, &node).await? {
            match call.app.store.delete_node(node.uuid, node.version).await {
                Ok(()) => return Ok(()),
                Err(StoreError::Stale(_)) => {}
                Err(other) => return Err(other.into()),
            }
        }
        if !retry.again().await {
            return Err(busy(call, &node).await);
        }
        node = call.app.store.node(node.uuid).await?;
    }
}

/// 409 while a conductor works on the node: a request to its BMC now would interfere.
pub async fn needs_unlocked(call: &Call, node: &Node) -> Result<(), ApiError> {
    match call.app.store.lease_holder(node.uuid, call.now()).await? {
        Some(holder) => Err(ApiError::locked(node.uuid, &holder)),
        None => Ok(()),
    }
}

async fn is_locked(call: &Call, node: &Node) -> Result<bool, ApiError> {
    Ok(call.app.store.lease_holder(node.uuid, call.now()).await?.is_some())
}

/// 409 that names the conductor that works on the node.
async fn busy(call: &Call, node: &Node) -> ApiError {
    match call.app.store.lease_holder(node.uuid, call.now()).await {
        Ok(Some(holder)) => ApiError::locked(node.uuid, &holder),
        Ok(None) => StoreError::Stale(node.uuid).into(),
        Err(error) => error.into(),
    }
}
