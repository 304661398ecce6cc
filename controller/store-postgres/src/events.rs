//! The log of events.

use crate::PostgresStore;
use crate::sql::event_log;
use async_trait::async_trait;
use model::Timestamp;
use std::time::Duration;
use store::{EventCursor, EventPage, EventStore, KeptEvents, Result};

/// How long the log is read for at most.
const LIMIT: Duration = Duration::from_secs(30);

impl PostgresStore {
    /// Give numbers to the events that are committed.
    async fn number_events(&self) -> Result<()> {
        while self.database.read_within(LIMIT, |change, _| Box::pin(event_log::is_pending(change))).await? {
            let more = self.database.write(|change, _| Box::pin(event_log::number(change))).await?;
            if !more {
                return Ok(());
            }
        }
        Ok(())
    }
}

#[async_trait]
impl EventStore for PostgresStore {
    async fn events(&self, after: Option<EventCursor>, limit: usize) -> Result<EventPage> {
        self.number_events().await?;
        self.database.read_within(LIMIT, |change, _| Box::pin(event_log::page(change, after, limit))).await
    }

    async fn newest_event(&self) -> Result<EventCursor> {
        self.number_events().await?;
        self.database.read_within(LIMIT, |change, _| Box::pin(event_log::newest(change))).await
    }

    async fn prune_events(&self, kept: KeptEvents, now: Timestamp) -> Result<u64> {
        let oldest = kept.oldest(now).0;
        self.database.write(|change, _| Box::pin(event_log::prune(change, oldest, kept.number))).await
    }
}
