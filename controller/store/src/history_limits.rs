//! How much history of a node is kept: pure, so that every store keeps the same.

use model::{Event, Timestamp};
use std::time::Duration;

/// Most events of a node; the oldest are deleted.
pub const MAX_EVENTS: usize = 1000;
/// Events that are older than the newest one of their node by more than this are deleted: 90 days.
pub const MAX_AGE: Duration = Duration::from_secs(90 * 24 * 3600);
/// Most events that one write deletes because of their age, so that it stays short.
pub const AT_ONCE: usize = 16;

/// The time before which events are deleted, once an event of `newest` is stored.
pub fn oldest_kept(newest: Timestamp) -> Timestamp {
    Timestamp(newest.0.saturating_sub(i64::try_from(MAX_AGE.as_micros()).unwrap_or(i64::MAX)))
}

/// Delete what is not kept from a history, oldest first.
pub fn prune(history: &mut Vec<Event>) {
    let excess = history.len().saturating_sub(MAX_EVENTS);
    history.drain(..excess);
    let Some(oldest) = history.last().map(|newest| oldest_kept(newest.at)) else { return };
    let mut index = 0;
    history.retain(|event| {
        index += 1;
        index > AT_ONCE || event.at >= oldest
    });
}
