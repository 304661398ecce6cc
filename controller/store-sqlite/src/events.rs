//! The log of events.

use crate::SqliteStore;
use crate::sql::event_log;
use async_trait::async_trait;
use model::Timestamp;
use store::{EventCursor, EventPage, EventStore, KeptEvents, Result};

#[async_trait]
impl EventStore for SqliteStore {
    async fn events(&self, after: Option<EventCursor>, limit: usize) -> Result<EventPage> {
        self.readers.read(move |connection| event_log::page(connection, after, limit)).await
    }

    async fn newest_event(&self) -> Result<EventCursor> {
        self.readers.read(event_log::newest).await
    }

    async fn prune_events(&self, kept: KeptEvents, now: Timestamp) -> Result<u64> {
        self.writer.write(move |change| event_log::prune(change, kept.oldest(now).0, kept.number)).await
    }
}
