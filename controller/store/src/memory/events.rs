//! The log of events.

use super::MemoryStore;
use super::state::State;
use crate::error::Result;
use crate::event_cursor::EventCursor;
use crate::event_page::{EventPage, EventRange, KeptEvents};
use crate::events::EventStore;
use async_trait::async_trait;
use model::Timestamp;

impl State {
    fn range(&self) -> EventRange {
        let first = self.log.keys().next().copied().unwrap_or(self.last_event + 1);
        EventRange { first, last: self.last_event }
    }
}

#[async_trait]
impl EventStore for MemoryStore {
    async fn events(&self, after: Option<EventCursor>, limit: usize) -> Result<EventPage> {
        let state = self.state();
        let range = state.range();
        let rows = state.log.range(range.begin(after)?..).take(EventPage::rows_needed(limit));
        let rows = rows.map(|(place, event)| (*place, event.clone())).collect();
        EventPage::of(range, after, rows, limit)
    }

    async fn newest_event(&self) -> Result<EventCursor> {
        let state = self.state();
        let newest = state.log.get(&state.last_event);
        let behind = |event: &model::LoggedEvent| EventCursor::behind(state.last_event, event.event.uuid);
        Ok(newest.map_or(EventCursor::at(state.last_event), behind))
    }

    async fn prune_events(&self, kept: KeptEvents, now: Timestamp) -> Result<u64> {
        let mut state = self.state();
        let mut deleted = 0;
        while deleted < KeptEvents::AT_ONCE {
            let excess = u64::try_from(state.log.len()).unwrap_or(u64::MAX) > kept.number;
            let Some(oldest) = state.log.first_entry() else { break };
            if !excess && oldest.get().event.at >= kept.oldest(now) {
                break;
            }
            oldest.remove();
            deleted += 1;
        }
        Ok(deleted)
    }
}
