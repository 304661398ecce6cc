//! The log of events.

use super::MemoryStore;
use super::state::State;
use crate::error::Result;
use crate::event_cursor::EventCursor;
use crate::event_page::{EventPage, EventRange, KeptEvents};
use crate::events::EventStore;
use async_trait::async_trait;
use model::{DeadLetter, Delivery, LoggedEvent, Timestamp};

impl State {
    fn range(&self) -> EventRange {
        let first = self.log.keys().next().copied().unwrap_or(self.last_event + 1);
        EventRange { first, last: self.last_event }
    }

    fn newest(&self) -> EventCursor {
        let behind = |event: &LoggedEvent| EventCursor::behind(self.last_event, event.event.uuid);
        self.log.get(&self.last_event).map_or(EventCursor::at(self.last_event), behind)
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
        Ok(self.state().newest())
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

    async fn take_webhook(
        &self,
        webhook: &str,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Delivery>> {
        let mut state = self.state();
        let stored = state.deliveries.get(webhook).cloned();
        let stored = stored.unwrap_or_else(|| Delivery::new(webhook, state.newest().to_string()));
        if !stored.is_free_for(holder, now) {
            return Ok(None);
        }
        let held = stored.held(holder, until);
        state.deliveries.insert(webhook.to_owned(), held.clone());
        Ok(Some(held))
    }

    async fn put_delivery(&self, delivery: Delivery, letter: Option<DeadLetter>) -> Result<bool> {
        let mut state = self.state();
        if state.deliveries.get(&delivery.webhook).is_none_or(|stored| stored.holder != delivery.holder) {
            return Ok(false);
        }
        state.deliveries.insert(delivery.webhook.clone(), delivery);
        if let Some(letter) = letter {
            state.dead_letters.insert((letter.webhook.clone(), letter.place), letter);
        }
        Ok(true)
    }

    async fn deliveries(&self) -> Result<Vec<Delivery>> {
        Ok(self.state().deliveries.values().cloned().collect())
    }

    async fn dead_letters(&self, webhook: &str, only_retried: bool, limit: usize) -> Result<Vec<DeadLetter>> {
        let state = self.state();
        let of = state.dead_letters.values().filter(|letter| letter.webhook == webhook);
        Ok(of.filter(|letter| letter.retry || !only_retried).take(limit).cloned().collect())
    }

    async fn put_dead_letter(&self, letter: DeadLetter) -> Result<()> {
        self.state().dead_letters.insert((letter.webhook.clone(), letter.place), letter);
        Ok(())
    }

    async fn remove_dead_letter(&self, webhook: &str, place: u64) -> Result<()> {
        self.state().dead_letters.remove(&(webhook.to_owned(), place));
        Ok(())
    }
}
