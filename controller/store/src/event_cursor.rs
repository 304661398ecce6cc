//! A place in the log of events.

use std::fmt;
use uuid::Uuid;

/// A place in the log: behind an event. Clients see it as a text, which means nothing to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventCursor {
    /// The number of the event; they grow by one in the order of the log.
    pub place: u64,
    /// A part of the UUID of the event, so that the place in another log is noticed: one that was restored from a backup gives
    /// the same numbers to other events. 0: not known.
    pub tag: u32,
}

impl EventCursor {
    /// Behind the event of this number and UUID.
    pub fn behind(place: u64, event: Uuid) -> Self {
        Self { place, tag: event.as_fields().0 }
    }

    /// Behind this number.
    pub fn at(place: u64) -> Self {
        Self { place, tag: 0 }
    }

    /// The cursor of such a text.
    pub fn parse(text: &str) -> Option<Self> {
        let (place, tag) = text.split_once('-')?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !digits(place) || !digits(tag) {
            return None;
        }
        Some(Self { place: u64::from_str_radix(place, 16).ok()?, tag: u32::from_str_radix(tag, 16).ok()? })
    }
}

impl fmt::Display for EventCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:08x}", self.place, self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients have stored them: never edit this.
    #[test]
    fn frozen_cursors() {
        let event = uuid::uuid!("9a3b22c1-0000-4000-8000-000000000001");
        for (cursor, text) in [
            (EventCursor::behind(500, event), "1f4-9a3b22c1"),
            (EventCursor::at(0), "0-00000000"),
            (EventCursor { place: u64::MAX, tag: 7 }, "ffffffffffffffff-00000007"),
        ] {
            assert_eq!(cursor.to_string(), text);
            assert_eq!(EventCursor::parse(text), Some(cursor));
        }
        for bad in ["", "-", "1", "1-", "-1", "+1-1", "1-x", "1-1-1", "10000000000000000-0", "1-100000000"] {
            assert_eq!(EventCursor::parse(bad), None, "{bad}");
        }
    }
}
