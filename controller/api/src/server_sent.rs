//! Server-sent events (WHATWG HTML, section 9.2): what all streams have in common, and streams that show one thing as it is now.

use crate::call::{Call, json_text};
use crate::error::{ApiError, Reply};
use crate::format::iso;
use crate::node_feed::Reading;
use crate::stream_places::Listener;
use async_trait::async_trait;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Response, header};
use axum::response::IntoResponse;
use futures_util::Stream;
use futures_util::stream::unfold;
use serde_json::Value;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// `Accept` and `Content-Type` of a stream.
const MEDIA_TYPE: &str = "text/event-stream";
/// A comment is sent after this time without an event, so that proxies and clients see that the stream is alive.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// What is sent then.
pub const COMMENT: &str = ": keep-alive\n\n";
/// A stream ends after this time, and the client goes on with another, whose rights are checked anew.
pub const LIFETIME: Duration = Duration::from_secs(3600);
/// After a read of the database that failed.
pub const PAUSE: Duration = Duration::from_secs(1);
/// A client that lost the stream waits for so many milliseconds.
pub const RETRY: &str = "retry: 2000\n";
/// Without a ring what is shown is read so often: rings of other controllers are lost while the database is out of reach.
const LOOK: Duration = Duration::from_secs(60);

/// Whether the client asked for a stream by name: `*/*` means JSON.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    let mut ranges = accepted.flat_map(|value| value.split(','));
    ranges.any(|range| {
        range.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case(MEDIA_TYPE))
    })
}

/// 503: there are as many streams of a kind as there may be.
pub fn busy(what: &str) -> Response<Body> {
    let busy = ApiError::client(503, format!("There are as many streams of {what} as there may be."));
    let mut response = busy.into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("30"));
    response
}

/// The answer that is this stream.
pub fn answer(parts: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response<Body> {
    let mut response = Response::new(Body::from_stream(parts));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    // nginx would collect the answer before it passes it on.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// What a stream shows.
#[async_trait]
pub trait Subject: Send + Sync + 'static {
    /// The name of its events.
    const EVENT: &'static str;
    /// Least time between two events.
    const GAP: Duration;

    /// How it is now, without the time of the answer. `None`: it is gone.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn read(&self, call: &Call) -> Result<Option<Value>, ApiError>;

    /// The same for a stream, which heard of a change at `since`; it may be what another stream read a moment ago.
    ///
    /// # Errors
    /// As above.
    async fn read_for_stream(&self, call: &Call, _since: Instant) -> Result<Option<Reading>, ApiError> {
        let shown = self.read(call).await?;
        Ok(shown.map(|shown| Reading { shown: Arc::new(shown), is_fresh: true }))
    }
}

/// The JSON of a subject, or a stream of it.
pub async fn show<S: Subject>(headers: &HeaderMap, call: Call, subject: S, listen: Listen<'_>) -> Reply {
    let listener = match is_wanted(headers).then(|| listen(&call)) {
        None => None,
        Some(None) => return Ok(busy("nodes")),
        // Before the first read: what changes meanwhile is heard.
        Some(listener) => listener,
    };
    let first = subject.read(&call).await?.ok_or_else(ApiError::not_found)?;
    let Some(listener) = listener else {
        return Ok(json_text(200, dated(&first, &call)));
    };
    let until = Instant::now() + LIFETIME;
    let (sent, next) = (digest(&first), Some(dated(&first, &call)));
    let live = Live { call, subject, listener, until, sent_at: Instant::now(), sent, next };
    let parts = unfold(Some(live), |live| async move {
        let mut live = live?;
        let (part, is_last) = live.part().await?;
        Some((Ok::<_, Infallible>(Bytes::from(part)), (!is_last).then_some(live)))
    });
    Ok(answer(parts))
}

/// Takes a place among the streams, if there is one.
pub type Listen<'a> = &'a (dyn Fn(&Call) -> Option<Listener<Instant>> + Sync);

/// A stream.
struct Live<S> {
    call: Call,
    subject: S,
    listener: Listener<Instant>,
    until: Instant,
    sent_at: Instant,
    /// Digest of what was sent last: many streams of a large fleet would hold it many times.
    sent: u64,
    /// What is sent next, when it was read already.
    next: Option<String>,
}

impl<S: Subject> Live<S> {
    /// The next part, and whether it is the last. `None`: the stream is over.
    async fn part(&mut self) -> Option<(String, bool)> {
        if let Some(first) = self.next.take() {
            return Some((format!("{RETRY}{}", event::<S>(&first)), false));
        }
        let quiet_until = Instant::now() + KEEP_ALIVE;
        loop {
            let now = Instant::now();
            if now >= quiet_until {
                return Some((COMMENT.to_owned(), false));
            }
            if now >= self.until {
                return None;
            }
            let look_at = self.sent_at + LOOK;
            let heard = tokio::time::timeout_at(quiet_until.min(look_at), self.listener.changed()).await;
            match heard {
                Ok(false) => return None,
                Err(_) if Instant::now() < look_at => continue,
                Ok(true) | Err(_) => {}
            }
            tokio::time::sleep_until(self.sent_at + S::GAP).await;
            let since = self.listener.seen();
            self.sent_at = Instant::now();
            match self.subject.read_for_stream(&self.call, since).await {
                Ok(Some(Reading { shown, is_fresh })) => {
                    if !is_fresh {
                        self.listener.again();
                    }
                    let is_new = digest(&shown) != std::mem::replace(&mut self.sent, digest(&shown));
                    if is_new {
                        return Some((event::<S>(&dated(&shown, &self.call)), false));
                    }
                }
                Ok(None) => return Some(("event: gone\ndata: {}\n\n".to_owned(), true)),
                Err(error) => {
                    tracing::warn!(error = error.message, "a stream cannot read what it shows; trying again");
                    tokio::time::sleep(PAUSE).await;
                    self.listener.again();
                }
            }
        }
    }
}

fn event<S: Subject>(shown: &str) -> String {
    format!("event: {}\ndata: {shown}\n\n", S::EVENT)
}

/// The text of an object, with the time of the answer.
fn dated(shown: &Value, call: &Call) -> String {
    let text = shown.to_string();
    match text.strip_prefix('{') {
        Some(rest) => format!("{{\"now\":\"{}\",{rest}", iso(call.now())),
        None => text,
    }
}

fn digest(shown: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    shown.to_string().hash(&mut hasher);
    hasher.finish()
}
