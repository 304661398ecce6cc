//! Delivers the events of one webhook, as long as this controller holds it.

use crate::schedule::{self, Backoff};
use crate::sender::Sender;
use crate::settings::Webhook;
use model::{DeadLetter, Delivery, LoggedEvent, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use store::{Clock, EventCursor, Store, StoreError};
use tokio_util::sync::CancellationToken;

/// How long a controller holds a webhook without storing anything: longer than a try and [`SPARE`].
const LEASE: Duration = Duration::from_secs(30);
/// For all that is done in addition to a try.
const SPARE: Duration = Duration::from_secs(5);
/// Without a ring it looks so often: at what other controllers write, and whether another has stopped to deliver.
const LOOK: Duration = Duration::from_secs(5);
/// Rings within this time cause one look.
const COALESCE: Duration = Duration::from_millis(100);
/// Most events that are read at once.
const PAGE: usize = 100;

/// Delivers the events of one webhook.
pub struct Dispatcher {
    name: String,
    settings: Webhook,
    backoff: Backoff,
    sender: Sender,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Name of this controller.
    holder: String,
}

/// What came of a turn.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// Everything is delivered, or the next try is not due before this.
    Rest(Option<Timestamp>),
    /// There may be more at once.
    More,
    /// Another controller delivers, or it is not known who does.
    Lost,
}

impl Dispatcher {
    /// For this webhook, by the controller of this name.
    ///
    /// # Errors
    /// As [`Webhook::client`].
    pub fn new(
        name: &str,
        settings: Webhook,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        holder: &str,
    ) -> Result<Self, String> {
        let sender = Sender::new(name, settings.clone())?;
        let backoff = Backoff::of(settings.max_tries);
        let (name, holder) = (name.to_owned(), holder.to_owned());
        Ok(Self { name, settings, backoff, sender, store, clock, holder })
    }

    /// The same with another backoff.
    pub fn with(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Deliver until `stop`; then another controller may at once.
    pub async fn run(self, stop: CancellationToken) {
        let mut ears = self.store.bell().listen();
        let mut held = None;
        while !stop.is_cancelled() {
            let turn = match self.turn(&mut held, &stop).await {
                Ok(turn) => turn,
                Err(error) => {
                    held = None;
                    tracing::warn!(webhook = self.name, error = %error.chain(), "events cannot be delivered; trying again");
                    Turn::Lost
                }
            };
            let wait = match turn {
                Turn::More => continue,
                Turn::Rest(Some(at)) => at.since(self.clock.now()).min(LOOK),
                Turn::Rest(None) | Turn::Lost => LOOK,
            };
            tokio::select! {
                _ = ears.recv(), if turn == Turn::Rest(None) => tokio::time::sleep(COALESCE).await,
                () = tokio::time::sleep(wait) => {}
                () = stop.cancelled() => {}
            }
            while ears.try_recv().is_ok() {}
        }
        self.give_back().await;
    }

    async fn take(&self) -> store::Result<Option<Delivery>> {
        let now = self.clock.now();
        self.store.take_webhook(&self.name, &self.holder, now, now.after(LEASE)).await
    }

    async fn give_back(&self) {
        let done = async {
            if let Some(held) = self.take().await? {
                self.store.put_delivery(Delivery { until: Timestamp(0), ..held }, None).await?;
            }
            Ok::<(), StoreError>(())
        };
        if let Err(error) = done.await {
            tracing::warn!(webhook = self.name, error = %error.chain(), "the webhook was not given back");
        }
    }

    /// `known`: what this controller holds, as it is stored.
    async fn turn(&self, known: &mut Option<Delivery>, stop: &CancellationToken) -> store::Result<Turn> {
        let now = self.clock.now();
        // Not taken anew for each ring: that would be a write for each. No other takes it over while a try is under way.
        let one_try = Duration::from_secs(u64::from(self.settings.timeout_s)) + SPARE;
        let lasts = |held: &Delivery| held.until > now.after(one_try) && held.until <= now.after(LEASE);
        let mut held = match known.take().filter(lasts) {
            Some(held) => held,
            None => match self.take().await? {
                Some(held) => held,
                None => return Ok(Turn::Lost),
            },
        };
        let turn = self.deliver_next(&mut held, stop).await?;
        *known = Some(held).filter(|_| turn != Turn::Lost);
        Ok(turn)
    }

    async fn deliver_next(&self, held: &mut Delivery, stop: &CancellationToken) -> store::Result<Turn> {
        let letter = self.retry_letter(held).await?;
        if letter == Turn::Lost {
            return Ok(letter);
        }
        let now = self.clock.now();
        // One that is farther away is of a clock that was set back.
        let latest = now.after(self.backoff.longest_pause);
        if let Some(due) = held.next_try_at.filter(|due| *due > now && *due <= latest) {
            return Ok(Turn::Rest(Some(due)));
        }
        let after = EventCursor::parse(&held.after);
        let page = match self.store.events(after, PAGE).await {
            Err(StoreError::CursorGone { oldest }) => {
                tracing::error!(
                    webhook = self.name,
                    "events were deleted before they were delivered; it goes on with the oldest that are kept"
                );
                held.advance(oldest.to_string());
                return Ok(if self.note(held, None).await? { Turn::More } else { Turn::Lost });
            }
            page => page?,
        };
        for (cursor, event) in &page.events {
            if stop.is_cancelled() {
                return Ok(Turn::Rest(None));
            }
            if self.settings.wants(event) {
                let due = held.next_try_at.is_some();
                if !self.deliver(held, *cursor, event).await? {
                    return Ok(Turn::Lost);
                }
                if let Some(next) = held.next_try_at {
                    return Ok(Turn::Rest(Some(next)));
                }
                tracing::debug!(webhook = self.name, %cursor, again = due, "event delivered");
            } else {
                held.advance(cursor.to_string());
            }
        }
        // What it did not want.
        if !page.events.is_empty() && !self.note(held, None).await? {
            return Ok(Turn::Lost);
        }
        Ok(if page.more || letter == Turn::More { Turn::More } else { Turn::Rest(None) })
    }

    /// Try an event, and store what came of it; false: another controller delivers.
    async fn deliver(
        &self,
        held: &mut Delivery,
        cursor: EventCursor,
        event: &LoggedEvent,
    ) -> store::Result<bool> {
        let sent = self.sender.send(cursor, event, self.clock.now()).await;
        let now = self.clock.now();
        let letter = match sent {
            Ok(()) => {
                held.advance(cursor.to_string());
                None
            }
            Err(error) => {
                tracing::warn!(
                    webhook = self.name,
                    tries = held.tries + 1,
                    error,
                    "an event was not delivered"
                );
                let place = (cursor.place, cursor.to_string());
                schedule::failed(held, place, event, error, self.backoff, now)
            }
        };
        if letter.is_some() {
            tracing::error!(webhook = self.name, %cursor, "an event was given up: it is a dead letter");
        }
        self.note(held, letter).await
    }

    /// Store how far it is; false: another controller delivers.
    async fn note(&self, held: &mut Delivery, letter: Option<DeadLetter>) -> store::Result<bool> {
        held.until = self.clock.now().after(LEASE);
        self.store.put_delivery(held.clone(), letter).await
    }

    /// Try a dead letter that a user asked for: one, so that events do not wait for many. `More`: there was one.
    async fn retry_letter(&self, held: &mut Delivery) -> store::Result<Turn> {
        let Some(letter) = self.store.dead_letters(&self.name, true, 1).await?.pop() else {
            return Ok(Turn::Rest(None));
        };
        let cursor = EventCursor::behind(letter.place, letter.event.event.uuid);
        let now = self.clock.now();
        match self.sender.send(cursor, &letter.event, now).await {
            Ok(()) => self.store.remove_dead_letter(&self.name, letter.place).await?,
            Err(error) => {
                let tries = letter.tries.saturating_add(1);
                let again = DeadLetter { tries, error, at: now, retry: false, ..letter };
                self.store.put_dead_letter(again).await?;
            }
        }
        Ok(if self.note(held, None).await? { Turn::More } else { Turn::Lost })
    }
}
