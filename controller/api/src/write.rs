//! Writing nodes: read, judge, write at the version that was read, and start again when another writer was faster.

use crate::call::Call;
use crate::error::ApiError;
use crate::lock::Lock;
use crate::retry::Retry;
use model::{Event, Node};
use std::future::ready;
use store::{StoreError, log_events};

/// A changed node with the events of the change.
pub type Change = (Node, Vec<Event>);

/// Change a node, also while a conductor works on it. `judge` is called once for each attempt, with the node as it is then; what
/// it refuses is refused at once and changes nothing.
pub async fn change(
    call: &Call,
    ident: &str,
    judge: impl Fn(&Node) -> Result<Change, ApiError> + Send + Sync,
) -> Result<Node, ApiError> {
    attempt(call, ident, None, |node| ready(judge(&node))).await
}

/// As [`change`], once the node is not locked: 409 that names who locks it otherwise.
pub async fn change_unlocked(
    call: &Call,
    ident: &str,
    judge: impl Fn(&Node) -> Result<Change, ApiError> + Send + Sync,
) -> Result<Node, ApiError> {
    attempt(call, ident, Some(Lock::Held), |node| ready(judge(&node))).await
}

/// As [`change`], once no change of the node's power is to be carried out any more, with a `judge` that reads more than the node.
pub async fn change_after_power<F>(
    call: &Call,
    ident: &str,
    judge: impl Fn(Node) -> F + Send + Sync,
) -> Result<Node, ApiError>
where
    F: Future<Output = Result<Change, ApiError>> + Send,
{
    attempt(call, ident, Some(Lock::PowerChange), judge).await
}

async fn attempt<F>(
    call: &Call,
    ident: &str,
    lock: Option<Lock>,
    judge: impl Fn(Node) -> F + Send + Sync,
) -> Result<Node, ApiError>
where
    F: Future<Output = Result<Change, ApiError>> + Send,
{
    let mut node = call.node(ident).await?;
    let mut retry = Retry::new();
    loop {
        if let Some(lock) = lock {
            node = lock.opened(call, node).await?;
        }
        let uuid = node.uuid;
        let (mut changed, events) = judge(node).await?;
        changed.updated_at = Some(call.now());
        let events = call.caused(events);
        match call.app.store.update_node(changed, events.clone(), None).await {
            Ok(node) => {
                log_events(&node, &events);
                return Ok(node);
            }
            Err(StoreError::Stale(_)) if retry.again().await => node = call.app.store.node(uuid).await?,
            Err(other) => return Err(other.into()),
        }
    }
}

/// Remove a node that `check` accepts once it is not locked: it must not disappear while a conductor switches it on or off.
pub async fn delete(
    call: &Call,
    ident: &str,
    check: impl Fn(&Node) -> Result<(), ApiError> + Send + Sync,
) -> Result<(), ApiError> {
    let mut node = call.node(ident).await?;
    let mut retry = Retry::new();
    loop {
        node = Lock::Held.opened(call, node).await?;
        check(&node)?;
        match call.app.store.delete_node(node.uuid, node.version).await {
            Ok(()) => return Ok(()),
            Err(StoreError::Stale(uuid)) if retry.again().await => node = call.app.store.node(uuid).await?,
            Err(other) => return Err(other.into()),
        }
    }
}
