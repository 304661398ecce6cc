//! A limit on what clients without any right can write into the log. Each place in the code that logs about them may log a few
//! lines in a while; the others are counted, and the count is logged. Otherwise 2,000 rejected requests per second would be
//! as many lines, and a journal that drops lines (journald does, above 10,000 in 30 s) would drop those that count.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata};
use tracing_subscriber::layer::{Context, Filter};

/// Modules that log what such clients send.
const LIMITED: [&str; 4] = ["api::ramdisk", "anneal_controller::directory", "boot::", "http_server"];
/// Lines of one place in the code in a [`PERIOD`].
const LINES: u64 = 50;
/// See [`LINES`].
pub const PERIOD: Duration = Duration::from_secs(10);

/// Counts lines by the place in the code that logs them.
#[derive(Clone, Default)]
pub struct LogLimit(Arc<Mutex<HashMap<Identifier, Place>>>);

struct Place {
    since: Instant,
    lines: u64,
    metadata: &'static Metadata<'static>,
}

/// Lines that were left out.
#[derive(Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The module that would have logged them.
    pub module: &'static str,
    /// The line of its file.
    pub line: u32,
    /// How many they were.
    pub count: u64,
}

impl LogLimit {
    /// Whether this line is logged.
    fn admits(&self, metadata: &'static Metadata<'static>, now: Instant) -> bool {
        // What an operator asks to see for debugging is not limited.
        if *metadata.level() > Level::INFO
            || !LIMITED.iter().any(|module| metadata.target().starts_with(module))
        {
            return true;
        }
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.entry(metadata.callsite()).or_insert(Place { since: now, lines: 0, metadata });
        place.lines += 1;
        place.lines <= LINES
    }

    /// Begin a new period for the places whose old one has ended, and return which lines of theirs were left out.
    pub fn renew(&self, now: Instant) -> Vec<LeftOut> {
        let mut left_out = Vec::new();
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|_, place| {
            let goes_on = now.saturating_duration_since(place.since) < PERIOD;
            if !goes_on && place.lines > LINES {
                let (module, line) = (place.metadata.target(), place.metadata.line().unwrap_or_default());
                left_out.push(LeftOut { module, line, count: place.lines - LINES });
            }
            goes_on
        });
        left_out
    }

    /// Log, until it is dropped, how many lines were left out.
    pub async fn report(self) -> anyhow::Result<()> {
        loop {
            tokio::time::sleep(PERIOD).await;
            for LeftOut { module, line, count } in self.renew(Instant::now()) {
                tracing::warn!(
                    module,
                    line,
                    count,
                    "more lines like the last ones of this module are left out"
                );
            }
        }
    }
}

impl<S> Filter<S> for LogLimit {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        self.admits(event.metadata(), Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_place_that_logs_about_unknown_clients_may_log_a_few_lines() {
        let (limit, written) = (LogLimit::default(), Written::default());
        let to = written.clone();
        let layer =
            tracing_subscriber::fmt::layer().with_writer(move || to.clone()).with_filter(limit.clone());
        let log = || {
            tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
                for _ in 0..=LINES {
                    tracing::warn!(target: "api::ramdisk::lookup", "limited");
                    tracing::info!(target: "boot::http", "the other");
                    tracing::debug!(target: "api::ramdisk::lookup", "for debugging");
                    tracing::info!(target: "audit", "who changed what");
                }
            });
        };
        log();
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let count = |what: &str| u64::try_from(text.matches(what).count()).unwrap();
        assert_eq!((count("limited"), count("the other")), (LINES, LINES));
        assert_eq!((count("for debugging"), count("who changed what")), (LINES + 1, LINES + 1));
        assert_eq!(limit.renew(Instant::now()), [], "the period goes on");
        let mut left_out = limit.renew(Instant::now() + PERIOD);
        left_out.sort_by_key(|left_out| left_out.module);
        let found: Vec<_> = left_out.iter().map(|left_out| (left_out.module, left_out.count)).collect();
        assert_eq!(found, [("api::ramdisk::lookup", 1), ("boot::http", 1)]);
        assert_eq!(limit.renew(Instant::now() + PERIOD), [], "a new one begins");
    }
}
