//! Writing nodes: read, judge, write at the version that was read, and start again when another writer was faster.

use crate::call::Call;
use crate::error::ApiError;
use crate::lock::Lock;
use crate::retry::Retry;
use model::history::{EventKind, Severity};
use model::{Event, Node, Timestamp};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
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
        let before = node.clone();
        let (mut changed, mut events) = judge(node).await?;
        if events.is_empty() {
            events.extend(change_event(&changed_fields(&before, &changed), call.now()));
        }
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

/// The event of a user's change of these fields; none of them: no event.
pub fn change_event<S: AsRef<str>>(fields: &[S], now: Timestamp) -> Option<Event> {
    let names: Vec<&str> = fields.iter().map(AsRef::as_ref).collect();
    let text = format!("{} changed by a user", names.join(", "));
    (!fields.is_empty()).then(|| Event::new(EventKind::Change, Severity::Info, text, now))
}

/// Names of the fields of a node that differ, but for those with which the controller keeps its own time.
fn changed_fields(before: &Node, after: &Node) -> Vec<String> {
    const OWN: [&str; 4] = ["next_wake_at", "updated_at", "version", "wait"];
    let (before, after) = (fields(before), fields(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differs = |name: &&String| before.get(*name) != after.get(*name) && !OWN.contains(&name.as_str());
    names.into_iter().filter(differs).cloned().collect()
}

/// The members of a node's row; what clients know as fields of the node stands next to the others.
fn fields(node: &Node) -> Map<String, Value> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(node) else { return Map::new() };
    for group in ["interfaces", "other"] {
        if let Some(Value::Object(members)) = fields.remove(group) {
            fields.extend(members);
        }
    }
    fields
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
        let text = "deleted by a user".to_owned();
        let event = Event::new(EventKind::Deleted, Severity::Info, text, call.now());
        let events = call.caused(vec![event]);
        match call.app.store.delete_node(node.uuid, node.version, events.clone()).await {
            Ok(()) => {
                log_events(&node, &events);
                return Ok(());
            }
            Err(StoreError::Stale(uuid)) if retry.again().await => node = call.app.store.node(uuid).await?,
            Err(other) => return Err(other.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_change_names_its_fields_and_never_their_values() {
        let before = Node::enrolled(Uuid::from_u128(1), "redfish", Timestamp(0));
        let mut after =
            Node { next_wake_at: Some(Timestamp(1)), updated_at: Some(Timestamp(1)), ..before.clone() };
        assert_eq!(changed_fields(&before, &after), [] as [String; 0]);
        after.driver_info.insert("redfish_password".to_owned(), "hunter2".into());
        after.other.insert("owner".to_owned(), "alpha".into());
        after.interfaces.insert("boot_interface".to_owned(), "ipxe".to_owned());
        let changed = changed_fields(&before, &after);
        assert_eq!(changed, ["boot_interface", "driver_info", "owner"]);
        let event = change_event(&changed, Timestamp(2)).unwrap();
        assert_eq!(event.text, "boot_interface, driver_info, owner changed by a user");
        assert!(change_event::<&str>(&[], Timestamp(2)).is_none());
    }
}
