//! Events about what a stranger asked for: in the history of the node that it was about, and not often.

use crate::error::{Result, StoreError};
use crate::nodes::NodeStore;
use model::history::Severity;
use model::{Event, EventKind, Timestamp};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// Strangers can ask as often as they like; the history of a node gets one event of a kind in this time.
const PAUSE: Duration = Duration::from_secs(60);
/// Most remarks that are remembered.
const REMARKS_MAX: usize = 10_000;
/// How often a write is tried that another one was faster than.
const TRIES: usize = 5;

/// Limits remarks. Clones share the limit.
#[derive(Debug, Clone, Default)]
pub struct Remarks(Arc<Mutex<HashMap<(Uuid, &'static str), Timestamp>>>);

impl Remarks {
    /// Put `text` into the history of a node, unless that got a remark of this kind a moment ago.
    ///
    /// # Errors
    /// The store fails.
    pub async fn note(
        &self,
        store: &dyn NodeStore,
        node: Uuid,
        kind: &'static str,
        text: &str,
        now: Timestamp,
    ) -> Result<()> {
        if !self.is_due((node, kind), now) {
            return Ok(());
        }
        let written = write(store, node, text, now).await;
        if written.is_err() {
            self.remembered().remove(&(node, kind));
        }
        written
    }

    fn is_due(&self, remark: (Uuid, &'static str), now: Timestamp) -> bool {
        let mut noted = self.remembered();
        // A time in the future was noted before the clock was set back.
        noted.retain(|_, at| *at <= now && now.since(*at) < PAUSE);
        if noted.contains_key(&remark) || noted.len() >= REMARKS_MAX {
            return false;
        }
        noted.insert(remark, now);
        true
    }

    fn remembered(&self) -> MutexGuard<'_, HashMap<(Uuid, &'static str), Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(store: &dyn NodeStore, node: Uuid, text: &str, now: Timestamp) -> Result<()> {
    for _ in 0..TRIES {
        let read = store.node(node).await?;
        let event = Event::new(EventKind::Agent, Severity::Error, text.to_owned(), now);
        match store.update_node(read, vec![event], None).await {
            Err(StoreError::Stale(_)) => {}
            written => return written.map(drop),
        }
    }
    Err(StoreError::Stale(node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;
    use model::Node;

    #[tokio::test]
    async fn each_kind_is_noted_once_a_minute_and_one_that_was_not_stored_is_noted_later() {
        let (store, remarks) = (MemoryStore::new(), Remarks::default());
        let node = Node::enrolled(Uuid::from_u128(7), "redfish", Timestamp(0));
        let note = async |kind, at: i64| {
            remarks.note(&store, Uuid::from_u128(7), kind, kind, Timestamp(at * 1_000_000)).await
        };
        assert!(matches!(note("medium", 0).await, Err(StoreError::NotFound { .. })));
        store.create_node(node, Vec::new()).await.unwrap();
        for (kind, at) in [("medium", 1), ("script", 2), ("medium", 59), ("script", 59), ("medium", 62)] {
            note(kind, at).await.unwrap();
        }
        let history = store.history(Uuid::from_u128(7)).await.unwrap();
        let texts: Vec<&str> = history.iter().map(|event| event.text.as_str()).collect();
        assert_eq!(texts, ["medium", "script", "medium"]);
    }
}
