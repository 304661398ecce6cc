//! The log of the events of all nodes.

use crate::error::Result;
use crate::event_cursor::EventCursor;
use crate::event_page::{EventPage, KeptEvents};
use async_trait::async_trait;
use model::{DeadLetter, Delivery, Timestamp};

/// The log of the events of all nodes. A write adds its events to it in the same transaction.
///
/// Each write that is acknowledged is in the log when the next read of it begins; those of a node stand in the order of its
/// history, and one that began after another was acknowledged stands behind it. A reader that goes on from cursor to cursor
/// gets each event once, also those of writes that other controllers commit late.
#[async_trait]
pub trait EventStore: Send + Sync {
    /// At most `limit` events behind a cursor; `None`: from the oldest that is kept.
    ///
    /// # Errors
    /// `CursorGone`.
    async fn events(&self, after: Option<EventCursor>, limit: usize) -> Result<EventPage>;
    /// The cursor behind the newest event.
    async fn newest_event(&self) -> Result<EventCursor>;
    /// Delete from the oldest on what is not kept, at most [`KeptEvents::AT_ONCE`] events; how many were deleted.
    async fn prune_events(&self, kept: KeptEvents, now: Timestamp) -> Result<u64>;

    /// Take a webhook for `holder` until `until`; `None`: another has it at `now`. A new one begins behind the newest event.
    async fn take_webhook(
        &self,
        webhook: &str,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Delivery>>;
    /// Store how far a webhook was delivered, with an event that it was not given, as long as the holder in `delivery` is the one
    /// that is stored; false if it is not.
    async fn put_delivery(&self, delivery: Delivery, letter: Option<DeadLetter>) -> Result<bool>;
    /// How far each webhook was delivered, by name.
    async fn deliveries(&self) -> Result<Vec<Delivery>>;
    /// The dead letters of a webhook, oldest event first, at most `limit`; of those `only_retried` that a user asked another try for.
    async fn dead_letters(&self, webhook: &str, only_retried: bool, limit: usize) -> Result<Vec<DeadLetter>>;
    /// Store a dead letter in the place of the one of its event.
    async fn put_dead_letter(&self, letter: DeadLetter) -> Result<()>;
    /// Delete a dead letter, if it is there.
    async fn remove_dead_letter(&self, webhook: &str, place: u64) -> Result<()>;
}
