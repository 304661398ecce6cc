//! The log of the events of all nodes.

use crate::error::Result;
use crate::event_cursor::EventCursor;
use crate::event_page::{EventPage, KeptEvents};
use async_trait::async_trait;
use model::Timestamp;

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
}
