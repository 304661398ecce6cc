//! Where an image comes from: HTTP and HTTPS, with redirects, retries and ranges.

use crate::error::SourceError;
use crate::hosts::Hosts;
use crate::proxy::Proxies;
use crate::trust::Trust;
use crate::url::ImageUrl;
use crate::verifier::client_config;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// How long and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// To connect, and then to the first byte of an answer.
    pub connect: Duration,
    /// A mirror that sends less than [`Limits::stall_bytes`] in this time has stalled. Time in which the disk was the
    /// slower one does not count.
    pub stall: Duration,
    /// See [`Limits::stall`].
    pub stall_bytes: u64,
    /// Failures in a row, without a byte between them, after which the mirror is given up.
    pub tries: u32,
    /// Nothing is given up before this time has passed without progress, however many tries have failed.
    pub patience: Duration,
    /// Before a further try; twice as long before the one after it.
    pub pause: Duration,
    /// For the whole image.
    pub deadline: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connect: Duration::from_secs(15),
            stall: Duration::from_secs(20),
            stall_bytes: 20 * 1024,
            tries: 5,
            patience: Duration::ZERO,
            pause: Duration::from_secs(1),
            deadline: None,
        }
    }
}

/// Where an image may come from, and how.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file.
    pub url: ImageUrl,
    /// Where the same file is, too. They are asked in turn while the one before does not give it.
    pub copies: Vec<ImageUrl>,
    /// Whose certificates mirrors may have.
    pub trust: Trust,
    /// Which hosts may be asked, also after a redirect.
    pub hosts: Hosts,
    /// Through which proxies.
    pub proxies: Proxies,
    /// How long and how often.
    pub limits: Limits,
    /// Headers that only the hosts of `url` and `copies` get: after a redirect to another one they are left out.
    pub headers: RequestHeaders,
}

/// Headers of each request. Their values are secrets, and not shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestHeaders(HeaderMap);

impl RequestHeaders {
    /// From names and values.
    ///
    /// # Errors
    /// One of them is no header. The problem does not contain the value.
    pub fn of<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().map_err(|_| "it is no name of a header".to_owned())?;
            let mut value =
                HeaderValue::from_str(value).map_err(|_| format!("the value of {name} is no header"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Self(headers))
    }
}

impl Source {
    /// Another file, which has no copies, gets none of the headers, and is not awaited with patience.
    #[must_use]
    pub fn of_another_file(&self, url: ImageUrl) -> Self {
        let limits = Limits { patience: Duration::ZERO, ..self.limits.clone() };
        Self { url, copies: Vec::new(), limits, headers: RequestHeaders::default(), ..self.clone() }
    }

    /// What a request to `url` has in addition.
    pub(crate) fn headers_for(&self, url: &ImageUrl) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        let same = self.places().any(|place| url.is_same_service(place));
        self.headers.0.iter().filter(move |_| same)
    }

    /// Where the file is, in the order in which they are asked.
    pub(crate) fn places(&self) -> impl Iterator<Item = &ImageUrl> {
        std::iter::once(&self.url).chain(&self.copies)
    }

    pub(crate) fn connector(&self) -> Result<TlsConnector, SourceError> {
        let config = client_config(self.trust.clone()).map_err(SourceError::Internal)?;
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_stay_on_their_host() {
        let url = |text: &str| text.parse::<ImageUrl>().expect(text);
        let source = Source {
            url: url("https://a/x"),
            copies: vec![url("https://copy:1/x")],
            trust: Trust::default(),
            hosts: Hosts::default(),
            proxies: Proxies::default(),
            limits: Limits::default(),
            headers: RequestHeaders::of([("x-token", "secret")]).expect("headers"),
        };
        let count = |to: &str| source.headers_for(&url(to)).count();
        assert_eq!((count("https://a/x"), count("https://a:443/y?z"), count("https://copy:1/z")), (1, 1, 1));
        for other in ["https://b/x", "https://a:444/x", "http://a/x", "https://a.b/x", "https://copy/x"] {
            assert_eq!(count(other), 0, "{other}");
        }
        let other = source.of_another_file(url("https://b/y"));
        assert_eq!((other.places().count(), other.headers_for(&url("https://b/y")).count()), (1, 0));
        assert!(!format!("{source:?}").contains("secret"));
        let problem = RequestHeaders::of([("x-token", "sec\nret")]).expect_err("two lines");
        assert!(!problem.contains("ret"), "{problem}");
    }
}
