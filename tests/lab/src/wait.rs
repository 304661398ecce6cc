//! Waiting for conditions, never for times.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::time::{Instant, sleep};

const PAUSE: Duration = Duration::from_millis(50);

/// Asks `check` again and again until it has an answer.
///
/// # Errors
/// When `check` fails, or `limit` passes (the error names `what`).
pub async fn until<T>(
    what: &str,
    limit: Duration,
    mut check: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(answer) = check().await.with_context(|| format!("waiting for {what}"))? {
            return Ok(answer);
        }
        if Instant::now() >= end {
            bail!("{what}: not within {} s", limit.as_secs_f64());
        }
        sleep(PAUSE).await;
    }
}

/// Waits for a line with `needle` in a file that grows, such as a serial console's, and returns it.
///
/// # Errors
/// When it does not come within `limit`; the end of the file is in the error.
pub async fn for_line(file: &Path, needle: &str, limit: Duration) -> Result<String> {
    let what = format!("{needle:?} in {}", file.display());
    let seen = until(&what, limit, async || {
        // The file may not be there yet: its writer is starting.
        let text = fs::read(file).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        Ok(text.lines().find(|line| line.contains(needle)).map(str::to_owned))
    });
    seen.await.with_context(|| format!("it ends with:\n{}", tail(file, 2000)))
}

/// The last `limit` bytes of a file, for an error message; what is no UTF-8 is replaced.
#[must_use]
pub fn tail(file: &Path, limit: usize) -> String {
    match fs::read(file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(limit)..]).into_owned(),
        Err(error) => format!("({}: {error})", file.display()),
    }
}
