//! The log of the process, on standard error.

use crate::config::LogFormat;
use crate::log_limit::LogLimit;
use anyhow::{Context, Result};
use std::io::IsTerminal;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// Begin to log what `filter` lets pass. A panic is logged, too. Returns the limit on what unknown clients cause.
pub fn start(filter: &str, format: LogFormat) -> Result<LogLimit> {
    let filter = EnvFilter::try_new(filter).context("configuration: log")?;
    let limit = LogLimit::default();
    let log = tracing_subscriber::fmt::layer::<Registry>()
        .with_writer(std::io::stderr)
        // Such an error is reported on standard error, with a panic where that cannot be written to.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => {
            let log = log.with_ansi(std::io::stderr().is_terminal()).with_filter(limit.clone());
            tracing_subscriber::registry().with(log).with(filter).init();
        }
        LogFormat::Json => {
            let log = log.json().with_filter(limit.clone());
            tracing_subscriber::registry().with(log).with(filter).init();
            log_panics();
        }
    }
    Ok(limit)
}

/// Log panics as events, so that each line of the log is one JSON object.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload_as_str().unwrap_or("a panic without a text");
        let place = panic.location().map(ToString::to_string);
        let thread = std::thread::current().name().map(str::to_owned);
        tracing::error!(place, thread, "panic: {text}");
    }));
}

/// End the process when the thread that writes the database panics: nothing would be stored any more.
pub fn abort_with_the_writer() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if std::thread::current().name() == Some(store_sqlite::WRITER) {
            std::process::abort();
        }
    }));
}
