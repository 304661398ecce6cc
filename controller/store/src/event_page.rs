//! A part of the log of events: pure, so that every store judges cursors alike.

use crate::error::{Result, StoreError};
use crate::event_cursor::EventCursor;
use model::{LoggedEvent, Timestamp};
use std::time::Duration;

/// A part of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// The events, in the order of the log, each with the cursor behind it.
    pub events: Vec<(EventCursor, LoggedEvent)>,
    /// Behind the last event that was looked at.
    pub next: EventCursor,
    /// Whether there are more.
    pub more: bool,
}

/// The numbers of the events that a log has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRange {
    /// Of the oldest one that is kept; without any, the one that the next event gets.
    pub first: u64,
    /// Of the newest one that ever was; 0 before the first.
    pub last: u64,
}

/// How many events are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptEvents {
    /// Older ones are deleted.
    pub age: Duration,
    /// Most events.
    pub number: u64,
}

impl KeptEvents {
    /// Most events that one call deletes, so that writes do not wait for it.
    pub const AT_ONCE: u64 = 1000;

    /// The time before which events are deleted at `now`.
    pub fn oldest(&self, now: Timestamp) -> Timestamp {
        Timestamp(now.0.saturating_sub(i64::try_from(self.age.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl EventRange {
    /// The place behind which a reader with this cursor begins.
    ///
    /// # Errors
    /// `CursorGone`: what came behind it is not kept any more, or it is none of this log.
    pub fn begin(self, after: Option<EventCursor>) -> Result<u64> {
        let oldest = self.first.saturating_sub(1);
        match after {
            None => Ok(oldest),
            Some(after) if (oldest..=self.last).contains(&after.place) => Ok(after.place),
            Some(_) => Err(self.gone()),
        }
    }

    /// The error for a cursor that is not of this log any more.
    fn gone(self) -> StoreError {
        StoreError::CursorGone { oldest: EventCursor::at(self.first.saturating_sub(1)) }
    }
}

impl EventPage {
    /// How many rows, from the place that [`EventRange::begin`] returns (with it) on, [`EventPage::of`] needs.
    pub fn rows_needed(limit: usize) -> usize {
        limit.saturating_add(2)
    }

    /// The page behind a cursor, of these rows: at most [`EventPage::rows_needed`], from the place of the cursor on.
    ///
    /// # Errors
    /// `CursorGone`.
    pub fn of(
        range: EventRange,
        after: Option<EventCursor>,
        mut rows: Vec<(u64, LoggedEvent)>,
        limit: usize,
    ) -> Result<Self> {
        let begin = range.begin(after)?;
        let mut next = after.unwrap_or(EventCursor::at(begin));
        if rows.first().is_some_and(|(place, _)| *place == begin) {
            let (place, own) = rows.remove(0);
            let found = EventCursor::behind(place, own.event.uuid);
            if next.tag != 0 && next.tag != found.tag {
                return Err(range.gone());
            }
            next = found;
        }
        let more = rows.len() > limit;
        rows.truncate(limit);
        let cursor =
            |(place, event): (u64, LoggedEvent)| (EventCursor::behind(place, event.event.uuid), event);
        let events: Vec<_> = rows.into_iter().map(cursor).collect();
        let next = events.last().map_or(next, |(cursor, _)| *cursor);
        Ok(Self { events, next, more })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::history::{EventKind, Severity};
    use model::{Event, Node};
    use uuid::Uuid;

    fn row(place: u64) -> (u64, LoggedEvent) {
        let node = Node::enrolled(Uuid::from_u128(1), "fake-hardware", Timestamp(0));
        let event = Event::new(EventKind::Step, Severity::Info, format!("event {place}"), Timestamp(0));
        (place, LoggedEvent::of(&node, event))
    }

    fn oldest(result: Result<EventPage>) -> u64 {
        match result {
            Err(StoreError::CursorGone { oldest }) => oldest.place,
            other => panic!("expected that the cursor is gone, got {other:?}"),
        }
    }

    #[test]
    fn a_page_says_where_the_next_begins_and_whether_there_is_one() {
        let range = EventRange { first: 4, last: 7 };
        let rows: Vec<_> = (4..=7).map(row).collect();
        let page = EventPage::of(range, None, rows[..3].to_vec(), 2).unwrap();
        assert_eq!(page.events.iter().map(|(cursor, _)| cursor.place).collect::<Vec<_>>(), [4, 5]);
        assert!(page.more);
        let page = EventPage::of(range, Some(page.next), rows[1..].to_vec(), 2).unwrap();
        assert_eq!(page.events.iter().map(|(cursor, _)| cursor.place).collect::<Vec<_>>(), [6, 7]);
        assert!(!page.more);
        let end = EventPage::of(range, Some(page.next), rows[3..].to_vec(), 2).unwrap();
        assert_eq!((end.events.len(), end.next, end.more), (0, page.next, false));
    }

    #[test]
    fn a_cursor_that_is_not_of_the_log_is_refused() {
        let range = EventRange { first: 4, last: 7 };
        let page = |place, tag, rows| EventPage::of(range, Some(EventCursor { place, tag }), rows, 9);
        assert!(page(3, 5, vec![row(4)]).is_ok(), "what is behind it is all there");
        assert_eq!(oldest(page(2, 0, vec![row(4)])), 3, "one behind it was deleted");
        assert_eq!(oldest(page(8, 0, Vec::new())), 3, "the log was restored from a backup");
        let kept = row(5);
        let right = EventCursor::behind(5, kept.1.event.uuid).tag;
        assert!(page(5, right, vec![kept.clone()]).is_ok());
        assert_eq!(oldest(page(5, right ^ 1, vec![kept])), 3, "and has other events since");
        let empty = EventRange { first: 8, last: 7 };
        assert!(EventPage::of(empty, Some(EventCursor::at(7)), Vec::new(), 9).is_ok());
        assert_eq!(EventRange { first: 1, last: 0 }.begin(None).unwrap(), 0);
    }
}
