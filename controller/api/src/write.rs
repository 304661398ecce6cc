//! Writing nodes: read, decide, write at the version read, and once more when somebody else was faster.

use crate::call::Call;
use crate::error::ApiError;
use model::{Event, Node};
use std::time::Duration;
use store::StoreError;

/// Pauses before another try. Conductors write between two reads of the API only for moments.
const PAUSES_MS: [u64; 4] = [5, 20, 60, 150];

/// Change a node. `decide` may be called several times, each time with the node as it is then; what it
/// refuses is refused at once and changes nothing.
pub async fn change(
    call: &Call,
    ident: &str,
    decide: impl Fn(&Node) -> Result<(Node, Vec<Event>), ApiError> + Send + Sync,
) -> Result<Node, ApiError> {
    let mut node = call.node(ident).await?;
    let uuid = node.uuid;
    for pause in PAUSES_MS {
        let (mut changed, events) = decide(&node)?;
        changed.updated_at = Some(call.now());
        match call.app.store.update_node(changed, events, None).await {
            Ok(node) => return Ok(node),
            Err(StoreError::Stale(_)) => {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                node = call.app.store.node(uuid).await?;
            }
            Err(other) => return Err(other.into()),
        }
    }
    Err(busy(call, &node).await)
}

/// 409 that names who works on the node.
pub async fn busy(call: &Call, node: &Node) -> ApiError {
    match call.app.store.lease_holder(node.uuid, call.now()).await {
        Ok(Some(holder)) => ApiError::locked(node.uuid, &holder),
        Ok(None) => StoreError::Stale(node.uuid).into(),
        Err(error) => error.into(),
    }
}
