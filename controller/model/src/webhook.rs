//! How far a webhook got the events, and the events that it was not given.

use crate::logged_event::LoggedEvent;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// No controller takes a webhook for longer. An end that is farther away is of a clock that was set back.
const LONGEST: Duration = Duration::from_secs(600);

/// How far a webhook got the events. The controller that holds it delivers; another takes it over when the time is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Name of the webhook.
    pub webhook: String,
    /// The cursor behind the last event that it got, did not want, or was not given for good.
    pub after: String,
    /// How often the next event was tried without success.
    #[serde(default)]
    pub tries: u32,
    /// Not before this is it tried again.
    #[serde(default)]
    pub next_try_at: Option<Timestamp>,
    /// Why the last try failed.
    #[serde(default)]
    pub last_error: Option<String>,
    /// The controller that delivers; `None`: none does.
    #[serde(default)]
    pub holder: Option<String>,
    /// Until when it does.
    pub until: Timestamp,
}

impl Delivery {
    /// One that begins behind this cursor.
    pub fn new(webhook: &str, after: String) -> Self {
        Self {
            webhook: webhook.to_owned(),
            after,
            tries: 0,
            next_try_at: None,
            last_error: None,
            holder: None,
            until: Timestamp(0),
        }
    }

    /// Whether `holder` may take it at `now`: no other holds it.
    pub fn is_free_for(&self, holder: &str, now: Timestamp) -> bool {
        let is_over = self.until <= now || self.until > now.after(LONGEST);
        is_over || self.holder.as_deref().is_none_or(|other| other == holder)
    }

    /// The same, held until then.
    pub fn held(self, holder: &str, until: Timestamp) -> Self {
        Self { holder: Some(holder.to_owned()), until, ..self }
    }

    /// The next event was got, or is not tried any more: it goes on behind it.
    pub fn advance(&mut self, after: String) {
        self.after = after;
        self.tries = 0;
        self.next_try_at = None;
        self.last_error = None;
    }
}

/// An event that a webhook was not given: it did not take it often enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Name of the webhook.
    pub webhook: String,
    /// Number of the event in the log; with the name of the webhook it is the id of the letter.
    pub place: u64,
    /// The event.
    pub event: LoggedEvent,
    /// When it was given up.
    pub at: Timestamp,
    /// How often it was tried.
    pub tries: u32,
    /// Why the last try failed.
    pub error: String,
    /// A user asked for another try.
    #[serde(default)]
    pub retry: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_controller_holds_it_at_a_time() {
        let free = Delivery::new("cmdb", "0-00000000".to_owned());
        assert!(free.is_free_for("a", Timestamp(5)));
        let held = free.held("a", Timestamp(9));
        assert!(held.is_free_for("a", Timestamp(5)) && !held.is_free_for("b", Timestamp(8)));
        assert!(held.is_free_for("b", Timestamp(9)), "its time is over");
        let late = held.held("a", Timestamp(700_000_000));
        assert!(late.is_free_for("b", Timestamp(9)), "the clock was set back");
    }
}
