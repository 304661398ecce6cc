//! Parts of a file, asked for in addition to the stream of it.

use crate::connection::{Problem, cause, get};
use crate::error::SourceError;
use crate::fetch::{Head, content_range};
use crate::source::Source;
use http_body_util::{BodyExt, Limited};
use hyper::header::{CONTENT_RANGE, HeaderMap, HeaderValue, IF_RANGE, RANGE};
use tokio_rustls::TlsConnector;

/// Reads parts of the file that `head` describes.
pub struct Ranges<'a> {
    source: &'a Source,
    connector: TlsConnector,
    validator: HeaderValue,
    runtime: tokio::runtime::Runtime,
}

impl<'a> Ranges<'a> {
    /// `None` when the server gives no parts, or has not said which file it is.
    ///
    /// # Errors
    /// The trust of the source is of no use.
    pub fn new(source: &'a Source, head: &Head) -> Result<Option<Self>, SourceError> {
        let Some(validator) = head.validator().filter(|_| head.ranges) else { return Ok(None) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| SourceError::Internal(error.to_string()))?;
        Ok(Some(Ranges { source, connector: source.connector()?, validator, runtime }))
    }

    async fn part(&self, offset: u64, length: usize) -> Result<Vec<u8>, Problem> {
        let mut headers = HeaderMap::new();
        let last = offset + length as u64 - 1;
        let range = HeaderValue::from_str(&format!("bytes={offset}-{last}"));
        headers.insert(RANGE, range.map_err(|error| Problem::Again(error.to_string()))?);
        headers.insert(IF_RANGE, self.validator.clone());
        let answer = get(self.source, &self.connector, &headers).await?;
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

    /// Exactly these bytes of the file.
    ///
    /// # Errors
    /// They cannot be had.
    pub fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, SourceError> {
        let mut failures = 0;
        loop {
            match self.runtime.block_on(self.part(offset, length)) {
                Ok(part) => return Ok(part),
                Err(Problem::Final(error)) => return Err(error),
                Err(Problem::Again(problem)) => {
                    failures += 1;
                    if failures >= self.source.limits.tries {
                        return Err(SourceError::Fetch { url: self.source.url.masked(), problem });
                    }
                    std::thread::sleep(self.source.limits.pause * failures);
                }
            }
        }
    }
}
