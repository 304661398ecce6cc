//! What follows a try: pure.

use model::{DeadLetter, Delivery, LoggedEvent, Timestamp};
use std::time::Duration;

/// When an event is tried again that was not taken, and when it is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first try that failed. It is doubled with each further one.
    pub first_pause: Duration,
    /// Longest pause.
    pub longest_pause: Duration,
    /// Most tries.
    pub tries: u32,
}

impl Backoff {
    /// With so many tries, the pauses of 1 s to 5 min.
    pub fn of(tries: u32) -> Self {
        Self { first_pause: Duration::from_secs(1), longest_pause: Duration::from_secs(300), tries }
    }

    /// The pause after so many tries that failed.
    fn pause(self, tries: u32) -> Duration {
        self.first_pause.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(self.longest_pause)
    }
}

/// An event of this number was tried and failed because of `error`: when it is tried again, or the letter that it becomes, behind
/// which the webhook goes on.
pub fn failed(
    delivery: &mut Delivery,
    (place, cursor): (u64, String),
    event: &LoggedEvent,
    error: String,
    backoff: Backoff,
    now: Timestamp,
) -> Option<DeadLetter> {
    let tries = delivery.tries.saturating_add(1);
    if tries < backoff.tries {
        delivery.tries = tries;
        delivery.next_try_at = Some(now.after(backoff.pause(tries)));
        delivery.last_error = Some(error);
        return None;
    }
    delivery.advance(cursor);
    let webhook = delivery.webhook.clone();
    Some(DeadLetter { webhook, place, event: event.clone(), at: now, tries, error, retry: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::history::{EventKind, Severity};
    use model::{Event, Node};
    use uuid::Uuid;

    #[test]
    fn pauses_grow_up_to_a_limit() {
        let seconds = [1, 2, 3, 4, 9, 10, 100, u32::MAX].map(|tries| Backoff::of(9).pause(tries).as_secs());
        assert_eq!(seconds, [1, 2, 4, 8, 256, 300, 300, 300]);
    }

    #[test]
    fn an_event_that_fails_often_enough_becomes_a_letter() {
        let node = Node::enrolled(Uuid::from_u128(1), "fake-hardware", Timestamp(0));
        let event = Event::new(EventKind::Step, Severity::Info, "text".to_owned(), Timestamp(0));
        let event = LoggedEvent::of(&node, event);
        let mut delivery = Delivery::new("cmdb", "1-00000000".to_owned());
        let second = |n: i64| Timestamp(n * 1_000_000);
        let fail = |delivery: &mut Delivery, now| {
            failed(
                delivery,
                (2, "2-00000000".to_owned()),
                &event,
                "status 500".to_owned(),
                Backoff::of(3),
                now,
            )
        };
        for (now, next) in [(second(10), second(11)), (second(11), second(13))] {
            assert_eq!(fail(&mut delivery, now), None);
            assert_eq!((delivery.next_try_at, delivery.after.as_str()), (Some(next), "1-00000000"));
        }
        let letter = fail(&mut delivery, second(13)).expect("the third try was the last");
        assert_eq!((letter.place, letter.tries, letter.at, letter.retry), (2, 3, second(13), false));
        assert_eq!((delivery.after.as_str(), delivery.tries, delivery.next_try_at), ("2-00000000", 0, None));
    }
}
