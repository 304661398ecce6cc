//! The log of events.

use crate::PostgresStore;
use crate::sql::{event_log, webhook};
use async_trait::async_trait;
use model::{DeadLetter, Delivery, Timestamp};
use std::time::Duration;
use store::{EventCursor, EventPage, EventStore, KeptEvents, Result};

/// How long the log is read for at most.
const LIMIT: Duration = Duration::from_secs(30);

impl PostgresStore {
    /// Give numbers to the events that are committed.
    async fn number_events(&self) -> Result<()> {
        while self.database.read_within(LIMIT, |change, _| Box::pin(event_log::is_pending(change))).await? {
            let number = self.database.write(|change, _| {
                event_log::number(change);
                Box::pin(async { Ok(()) })
            });
            number.await?;
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
        // Without a reader nothing else numbers them, and what has no number is not deleted.
        self.number_events().await?;
        let oldest = kept.oldest(now).0;
        self.database.write(|change, _| Box::pin(event_log::prune(change, oldest, kept.number))).await
    }

    async fn take_webhook(
        &self,
        webhook: &str,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Delivery>> {
        let (newest, who) = (self.newest_event().await?, (webhook, holder));
        self.database.write(|change, _| Box::pin(webhook::take(change, who, newest, now, until))).await
    }

    async fn put_delivery(&self, delivery: Delivery, letter: Option<DeadLetter>) -> Result<bool> {
        let (delivery, letter) = (&delivery, letter.as_ref());
        self.database.write(|change, _| Box::pin(webhook::put(change, delivery, letter))).await
    }

    async fn deliveries(&self) -> Result<Vec<Delivery>> {
        self.database.read(|client, _| Box::pin(webhook::all(client))).await
    }

    async fn dead_letters(&self, webhook: &str, only_retried: bool, limit: usize) -> Result<Vec<DeadLetter>> {
        let read =
            self.database.read(|client, _| Box::pin(webhook::letters(client, webhook, only_retried, limit)));
        read.await
    }

    async fn put_dead_letter(&self, letter: DeadLetter) -> Result<()> {
        let letter = &letter;
        self.database.write(|change, _| Box::pin(webhook::put_letter(change, letter))).await
    }

    async fn remove_dead_letter(&self, webhook: &str, place: u64) -> Result<()> {
        self.database.write(|change, _| Box::pin(webhook::remove_letter(change, webhook, place))).await
    }
}
