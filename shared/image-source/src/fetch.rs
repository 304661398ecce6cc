//! The whole file in its order, over as many connections as it takes.

use crate::connection::{Answer, Problem, cause, get};
use crate::error::SourceError;
use crate::source::Source;
use crate::url::ImageUrl;
use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_RANGE,
    LAST_MODIFIED, RANGE,
};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio_rustls::TlsConnector;

/// What the first answer says of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Its length, unless it comes in chunks.
    pub length: Option<u64>,
    /// Its entity tag.
    pub etag: Option<String>,
    /// When it was changed last.
    pub modified: Option<String>,
    /// Whether the server gives parts of it.
    pub ranges: bool,
}

impl Head {
    fn of(headers: &HeaderMap) -> Self {
        let text =
            |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Head {
            length: text(CONTENT_LENGTH).and_then(|length| length.parse().ok()),
            etag: text(ETAG),
            modified: text(LAST_MODIFIED),
            ranges: text(ACCEPT_RANGES).is_some_and(|unit| unit.eq_ignore_ascii_case("bytes")),
        }
    }

    /// What names the file to a server: a strong entity tag, or a date.
    pub(super) fn validator(&self) -> Option<HeaderValue> {
        let strong = self.etag.as_deref().filter(|tag| !tag.starts_with("W/"));
        HeaderValue::from_str(strong.or(self.modified.as_deref())?).ok()
    }

    /// In what another answer says that it is of another file.
    pub(super) fn difference(&self, other: &Head, length: Option<u64>) -> Option<String> {
        let both = |what: &str, a: Option<String>, b: Option<String>| match (a, b) {
            (Some(a), Some(b)) if a != b => Some(format!("{what} {b} instead of {a}")),
            _ => None,
        };
        both("ETag", self.etag.clone(), other.etag.clone())
            .or_else(|| both("Last-Modified", self.modified.clone(), other.modified.clone()))
            .or_else(|| both("length", self.length.map(|a| a.to_string()), length.map(|b| b.to_string())))
    }
}

/// What receives the file.
pub trait Receiver {
    /// Why it wants no more.
    type Error: From<SourceError>;

    /// The first answer.
    ///
    /// # Errors
    /// It does not want this file.
    fn head(&mut self, head: &Head) -> Result<(), Self::Error>;
    /// The next bytes. Blocks while there is no room for them.
    ///
    /// # Errors
    /// It wants no more.
    fn bytes(&mut self, bytes: Bytes) -> Result<(), Self::Error>;
    /// Something that an operator should know: a try that failed.
    fn note(&mut self, problem: &str);
    /// Whether to stop; asked several times a second.
    fn cancelled(&self) -> bool;
}

/// A file that is being fetched.
pub struct Fetch<'a> {
    source: &'a Source,
    connector: TlsConnector,
    /// Where the file may still be had; the present one is the first.
    places: VecDeque<&'a ImageUrl>,
    head: Option<Head>,
    received: u64,
    begun: Instant,
    /// When a connection last brought bytes and did not stall, or everything began.
    progress: Instant,
}

/// How a connection ended.
enum End {
    Whole,
    /// It broke.
    Broken(String),
    /// The server has not got the file yet.
    NotYet(String),
    Stalled(u64),
    /// The place was given up, and there are others.
    GivenUp(SourceError),
}

impl<'a> Fetch<'a> {
    /// From where it is.
    ///
    /// # Errors
    /// The trust of the source is of no use.
    pub fn new(source: &'a Source) -> Result<Self, SourceError> {
        let (connector, places, begun) = (source.connector()?, source.places().collect(), Instant::now());
        Ok(Fetch { source, connector, places, head: None, received: 0, begun, progress: begun })
    }

    /// Fetches all of it.
    ///
    /// # Errors
    /// Why not all of it has come, or what the receiver said.
    pub async fn run<R: Receiver>(&mut self, receiver: &mut R) -> Result<(), R::Error> {
        let mut failures = 0;
        loop {
            let before = self.received;
            let end = self.connection(receiver).await?;
            let turns = matches!(end, End::Broken(_) | End::Stalled(_));
            let last = match end {
                End::Whole => return Ok(()),
                End::Broken(problem) => match self.head.as_ref().and_then(|head| head.length) {
                    Some(expected) if before > 0 && self.received == before => {
                        SourceError::Short { url: self.url(), received: self.received, expected }
                    }
                    _ => SourceError::Fetch { url: self.url(), problem },
                },
                End::NotYet(problem) => SourceError::Fetch { url: self.url(), problem },
                End::Stalled(bytes) => {
                    let seconds = self.source.limits.stall.as_secs();
                    SourceError::Stalled { url: self.url(), bytes, seconds, received: self.received }
                }
                End::GivenUp(error) => error,
            };
            if self.received > before && !matches!(last, SourceError::Stalled { .. }) {
                (failures, self.progress) = (1, Instant::now());
            } else {
                failures += 1;
            }
            receiver.note(&last.to_string());
            let limits = &self.source.limits;
            if failures >= limits.tries && self.progress.elapsed() >= limits.patience {
                return Err(last.into());
            }
            self.pause(failures, &*receiver).await?;
            // A place that gave bytes is asked once more.
            if turns && failures > 1 {
                self.places.rotate_left(1);
            }
        }
    }

    fn place(&self) -> &'a ImageUrl {
        self.places.front().copied().unwrap_or(&self.source.url)
    }

    fn url(&self) -> crate::MaskedUrl {
        self.place().masked()
    }

    /// Another try at the present place would end like this one.
    fn give_up(&mut self, error: SourceError) -> Result<End, SourceError> {
        if self.places.len() < 2 {
            return Err(error);
        }
        self.places.pop_front();
        Ok(End::GivenUp(error))
    }

    async fn pause<R: Receiver>(&self, failures: u32, receiver: &R) -> Result<(), SourceError> {
        let until = Instant::now() + self.source.limits.pause * 2u32.pow((failures - 1).min(5));
        while Instant::now() < until {
            self.check(receiver)?;
            let left = until.saturating_duration_since(Instant::now());
            tokio::time::sleep(left.min(Duration::from_millis(100))).await;
        }
        Ok(())
    }

    fn check<R: Receiver>(&self, receiver: &R) -> Result<(), SourceError> {
        if receiver.cancelled() {
            return Err(SourceError::Cancelled);
        }
        match self.source.limits.deadline {
            Some(deadline) if self.begun.elapsed() > deadline => {
                Err(SourceError::Deadline(deadline.as_secs()))
            }
            _ => Ok(()),
        }
    }

    /// One connection, from the place where the last one ended.
    async fn connection<R: Receiver>(&mut self, receiver: &mut R) -> Result<End, R::Error> {
        let mut headers = HeaderMap::new();
        if self.received > 0
            && let Some(validator) = self.head.as_ref().and_then(Head::validator)
            && let Ok(range) = HeaderValue::from_str(&format!("bytes={}-", self.received))
        {
            headers.insert(RANGE, range);
            headers.insert(IF_RANGE, validator);
        }
        let asked = async {
            let asking = get(self.source, self.place(), &self.connector, &headers);
            tokio::pin!(asking);
            loop {
                match tokio::time::timeout(Duration::from_millis(200), &mut asking).await {
                    Ok(answer) => break Ok(answer),
                    Err(_) => self.check(&*receiver)?,
                }
            }
        };
        let answer = match asked.await? {
            Ok(answer) => answer,
            Err(Problem::Again(problem)) => return Ok(End::Broken(problem)),
            Err(Problem::Final(error)) => return Ok(self.give_up(error)?),
        };
        let status = answer.response.status().as_u16();
        let skip = match status {
            200 => self.begin(&answer.response, receiver)?,
            206 if self.received > 0 => {
                self.go_on(&answer.response)?;
                0
            }
            503 => return Ok(End::NotYet(format!("{} answered 503", answer.url))),
            // An overloaded server may recover.
            408 | 425 | 429 | 500..=599 => {
                return Ok(End::Broken(format!("{} answered {status}", answer.url)));
            }
            // It ends where we are, and was said to be longer.
            416 if self.received > 0 => {
                let expected = self.head.as_ref().and_then(|head| head.length).unwrap_or_default();
                return Err(SourceError::Short { url: self.url(), received: self.received, expected }.into());
            }
            _ => return Ok(self.give_up(SourceError::Status { url: answer.url.masked(), status })?),
        };
        self.body(answer, skip, receiver).await
    }

    /// An answer with the whole file. How many bytes of it are known already.
    fn begin<R: Receiver>(
        &mut self,
        response: &Response<Incoming>,
        receiver: &mut R,
    ) -> Result<u64, R::Error> {
        let head = Head::of(response.headers());
        match &self.head {
            None => {
                receiver.head(&head)?;
                self.head = Some(head);
                Ok(0)
            }
            Some(known) => match known.difference(&head, head.length) {
                Some(what) => Err(SourceError::Changed { url: self.url(), what }.into()),
                None => Ok(self.received),
            },
        }
    }

    /// An answer with the rest of the file.
    fn go_on(&self, response: &Response<Incoming>) -> Result<(), SourceError> {
        let changed = |what: String| Err(SourceError::Changed { url: self.url(), what });
        let (head, known) = (Head::of(response.headers()), self.head.clone().unwrap_or_default());
        let range = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
        let Some((first, length)) = range.and_then(content_range) else {
            return changed("the server does not say which part it sends".to_owned());
        };
        if first != self.received {
            return changed(format!("the server sends from byte {first} instead of {}", self.received));
        }
        match known.difference(&Head { length, ..head }, length) {
            Some(what) => changed(what),
            None => Ok(()),
        }
    }

    async fn body<R: Receiver>(
        &mut self,
        answer: Answer,
        mut skip: u64,
        receiver: &mut R,
    ) -> Result<End, R::Error> {
        let Answer { response, driver, .. } = answer;
        let mut body = response.into_body();
        let limits = &self.source.limits;
        // Only time spent waiting for the mirror counts.
        let (mut waited, mut in_window) = (Duration::ZERO, 0u64);
        let end = loop {
            self.check(&*receiver)?;
            let asked = Instant::now();
            let next = tokio::time::timeout(Duration::from_millis(200), body.frame()).await;
            waited += asked.elapsed();
            let frame = match next {
                Err(_) => Bytes::new(),
                Ok(None) => break End::Whole,
                Ok(Some(Err(error))) => break End::Broken(cause(&error)),
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            };
            in_window += frame.len() as u64;
            if in_window >= limits.stall_bytes {
                (waited, in_window) = (Duration::ZERO, 0);
            } else if waited >= limits.stall {
                break End::Stalled(in_window);
            }
            let known = usize::try_from(skip).unwrap_or(usize::MAX).min(frame.len());
            skip -= known as u64;
            if known < frame.len() {
                let fresh = frame.slice(known..);
                self.received += fresh.len() as u64;
                receiver.bytes(fresh)?;
            }
        };
        drop(driver);
        Ok(match (end, self.head.as_ref().and_then(|head| head.length)) {
            (End::Whole, Some(length)) if self.received < length => {
                End::Broken(format!("the connection ended after {} of {length} bytes", self.received))
            }
            (end, _) => end,
        })
    }
}

/// Runs a fetch on a runtime of its own, in this thread.
///
/// # Errors
/// As [`Fetch::run`].
pub fn fetch<R: Receiver>(source: &Source, receiver: &mut R) -> Result<(), R::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| SourceError::Internal(error.to_string()))?;
    let ended = runtime.block_on(async { Fetch::new(source)?.run(receiver).await });
    // A resolver that waits for an answer must not hold up what was cancelled.
    runtime.shutdown_background();
    ended
}

/// A whole file of at most `limit` bytes, into memory. `note` hears of tries that failed; `cancelled` is asked several
/// times a second.
///
/// # Errors
/// Why not.
pub fn fetch_small(
    source: &Source,
    limit: usize,
    note: &dyn Fn(&str),
    cancelled: &dyn Fn() -> bool,
) -> Result<Vec<u8>, SourceError> {
    struct Small<'a> {
        bytes: Vec<u8>,
        limit: usize,
        source: &'a Source,
        note: &'a dyn Fn(&str),
        cancelled: &'a dyn Fn() -> bool,
    }
    impl Receiver for Small<'_> {
        type Error = SourceError;

        fn head(&mut self, _: &Head) -> Result<(), SourceError> {
            Ok(())
        }
        fn bytes(&mut self, bytes: Bytes) -> Result<(), SourceError> {
            self.bytes.extend_from_slice(&bytes);
            if self.bytes.len() > self.limit {
                let problem = format!("it has more than {} bytes", self.limit);
                return Err(SourceError::Fetch { url: self.source.url.masked(), problem });
            }
            Ok(())
        }
        fn note(&mut self, problem: &str) {
            (self.note)(problem);
        }
        fn cancelled(&self) -> bool {
            (self.cancelled)()
        }
    }
    let mut small = Small { bytes: Vec::new(), limit, source, note, cancelled };
    fetch(source, &mut small)?;
    Ok(small.bytes)
}

/// First byte, and length of the whole, of `bytes 5-9/10`.
pub(super) fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (part, whole) = text.strip_prefix("bytes ")?.split_once('/')?;
    let first = part.split_once('-')?.0.trim().parse().ok()?;
    Some((first, whole.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_two_files_are_distinguished() {
        let head =
            |etag: Option<&str>, length| Head { etag: etag.map(str::to_owned), length, ..Head::default() };
        let known = head(Some("\"a\""), Some(10));
        assert_eq!(known.difference(&head(Some("\"a\""), None), Some(10)), None);
        assert_eq!(known.difference(&head(None, None), None), None);
        assert!(known.difference(&head(Some("\"b\""), None), Some(10)).is_some());
        assert!(known.difference(&head(Some("\"a\""), None), Some(11)).is_some());
        assert_eq!(known.validator(), Some(HeaderValue::from_static("\"a\"")));
        assert_eq!(head(Some("W/\"a\""), None).validator(), None, "a weak one does not name bytes");
    }

    #[test]
    fn parts_say_where_they_begin() {
        assert_eq!(content_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(content_range("bytes 5-9/*"), Some((5, None)));
        assert_eq!(content_range("bytes */10"), None);
        assert_eq!(content_range("lines 5-9/10"), None);
    }
}
