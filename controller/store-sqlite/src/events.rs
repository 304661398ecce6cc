//! The log of events.

use crate::SqliteStore;
use crate::sql::{event_log, webhook};
use async_trait::async_trait;
use model::{DeadLetter, Delivery, Timestamp};
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

    async fn take_webhook(
        &self,
        webhook: &str,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Delivery>> {
        let (name, holder) = (webhook.to_owned(), holder.to_owned());
        self.writer.write(move |change| webhook::take(change, &name, &holder, now, until)).await
    }

    async fn put_delivery(&self, delivery: Delivery, letter: Option<DeadLetter>) -> Result<bool> {
        self.writer.write(move |change| webhook::put(change, &delivery, letter.as_ref())).await
    }

    async fn deliveries(&self) -> Result<Vec<Delivery>> {
        self.readers.read(webhook::all).await
    }

    async fn dead_letters(&self, webhook: &str, only_retried: bool, limit: usize) -> Result<Vec<DeadLetter>> {
        let name = webhook.to_owned();
        self.readers.read(move |connection| webhook::letters(connection, &name, only_retried, limit)).await
    }

    async fn put_dead_letter(&self, letter: DeadLetter) -> Result<()> {
        self.writer.write(move |change| webhook::put_letter(change, &letter)).await
    }

    async fn remove_dead_letter(&self, webhook: &str, place: u64) -> Result<()> {
        let name = webhook.to_owned();
        self.writer.write(move |change| webhook::remove_letter(change, &name, place)).await
    }
}
