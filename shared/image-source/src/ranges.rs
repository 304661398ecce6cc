//! Parts of a file, asked for in addition to the stream of it.

use crate::connection::{Problem, cause, get};
use crate::error::SourceError;
use crate::fetch::{Head, content_range};
use crate::source::Source;
use crate::url::ImageUrl;
use http_body_util::{BodyExt, Limited};
use hyper::header::{CONTENT_RANGE, HeaderMap, HeaderValue, IF_RANGE, RANGE};
use std::cell::Cell;
use std::time::{Duration, Instant};
use tokio_rustls::TlsConnector;

/// Longest pause between two tries, in first ones.
const LONGEST: u32 = 8;
/// Between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Reads parts of the file that `head` describes.
pub struct Ranges<'a> {
    source: &'a Source,
    connector: TlsConnector,
    validator: HeaderValue,
    runtime: tokio::runtime::Runtime,
    /// The place that is asked, by its number among those of the source.
    at: Cell<usize>,
    cancelled: &'a dyn Fn() -> bool,
}

impl<'a> Ranges<'a> {
    /// `None` when the server gives no parts, or has not said which file it is. `cancelled` is asked between two tries.
    ///
    /// # Errors
    /// The trust of the source is of no use.
    pub fn new(
        source: &'a Source,
        head: &Head,
        cancelled: &'a dyn Fn() -> bool,
    ) -> Result<Option<Self>, SourceError> {
        let Some(validator) = head.validator().filter(|_| head.ranges) else { return Ok(None) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| SourceError::Internal(error.to_string()))?;
        let (connector, at) = (source.connector()?, Cell::new(0));
        Ok(Some(Ranges { source, connector, validator, runtime, at, cancelled }))
    }

    async fn part(&self, offset: u64, length: usize) -> Result<Vec<u8>, Problem> {
        let mut headers = HeaderMap::new();
        let last = offset + length as u64 - 1;
        let range = HeaderValue::from_str(&format!("bytes={offset}-{last}"));
        headers.insert(RANGE, range.map_err(|error| Problem::Again(error.to_string()))?);
        headers.insert(IF_RANGE, self.validator.clone());
        let answer = get(self.source, self.place(), &self.connector, &headers).await?;
        let (url, status) = (answer.url.masked(), answer.response.status().as_u16());
        let range = answer.response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
        match (status, range.and_then(content_range)) {
            (206, Some((first, _))) if first == offset => {}
            (200 | 206, _) => {
                let what = "another version, or another part, than was asked for".to_owned();
                return Err(Problem::Final(SourceError::Changed { url, what }));
            }
            (408 | 425 | 429 | 500..=599, _) => return Err(Problem::Again(format!("it answered {status}"))),
            _ => return Err(Problem::Final(SourceError::Status { url, status })),
        }
        let body = Limited::new(answer.response.into_body(), length).collect();
        let body = tokio::time::timeout(self.source.limits.stall, body).await;
        let body = body.map_err(|_| Problem::Again("a part of it stalled".to_owned()))?;
        let body = body.map_err(|error| {
            Problem::Again(error.downcast_ref::<hyper::Error>().map_or_else(|| error.to_string(), cause))
        })?;
        Ok(body.to_bytes().to_vec())
    }

    fn place(&self) -> &ImageUrl {
        self.source.places().nth(self.at.get()).unwrap_or(&self.source.url)
    }

    /// Exactly these bytes of the file.
    ///
    /// # Errors
    /// They cannot be had.
    pub fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, SourceError> {
        let (begun, limits, places) = (Instant::now(), &self.source.limits, self.source.places().count());
        // In a row: of any kind, and of those that another try would not change.
        let (mut failures, mut refusals) = (0, 0);
        loop {
            let error = match self.runtime.block_on(self.part(offset, length)) {
                Ok(part) => return Ok(part),
                Err(Problem::Final(error)) => {
                    refusals += 1;
                    error
                }
                Err(Problem::Again(problem)) => {
                    refusals = 0;
                    SourceError::Fetch { url: self.place().masked(), problem }
                }
            };
            failures += 1;
            let out_of_tries = failures >= limits.tries && begun.elapsed() >= limits.patience;
            if out_of_tries || refusals >= places {
                return Err(error);
            }
            self.at.set((self.at.get() + 1) % places);
            let until = Instant::now() + limits.pause * failures.min(LONGEST);
            while Instant::now() < until {
                if (self.cancelled)() {
                    return Err(SourceError::Cancelled);
                }
                std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
            }
        }
    }
}
