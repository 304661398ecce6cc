//! `[events]`

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use store::KeptEvents;

/// `[events]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventSettings {
    pub keep_days: u32,
    pub keep_events: u64,
    pub max_streams: usize,
}

impl Default for EventSettings {
    fn default() -> Self {
        Self { keep_days: 30, keep_events: 1_000_000, max_streams: api::EventFeed::STREAMS }
    }
}

impl EventSettings {
    /// Check what the types do not.
    pub fn check(&self) -> Result<()> {
        ensure!((1..=3650).contains(&self.keep_days), "events.keep_days must be 1 to 3650");
        ensure!(
            (1000..=100_000_000).contains(&self.keep_events),
            "events.keep_events must be 1000 to 100000000"
        );
        ensure!(self.max_streams <= 100_000, "events.max_streams must be at most 100000");
        Ok(())
    }

    /// Most streams of events. Each holds a connection of an operator: half of those stay for others.
    pub fn streams(&self, operators: usize) -> usize {
        self.max_streams.min(operators / 2)
    }

    /// How many events are kept.
    pub fn kept(&self) -> KeptEvents {
        let age = Duration::from_secs(24 * 3600 * u64::from(self.keep_days));
        KeptEvents { age, number: self.keep_events }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_leaves_connections_for_others() {
        let settings = EventSettings::default();
        assert!(settings.check().is_ok());
        assert_eq!((settings.streams(1024), settings.streams(256), settings.streams(1)), (256, 128, 0));
        for wrong in [
            EventSettings { keep_days: 0, ..settings.clone() },
            EventSettings { keep_events: 999, ..settings.clone() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
        assert_eq!(settings.kept().age, Duration::from_secs(30 * 24 * 3600));
    }
}
