//! Where an image comes from: HTTP and HTTPS, with redirects, retries and ranges.

use crate::error::SourceError;
use crate::hosts::Hosts;
use crate::url::ImageUrl;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use pinned_tls::{Accept, Pin, client_config};
use rustls::client::WebPkiServerVerifier;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// Whose certificate a mirror must have. There are no public authorities in the ramdisk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// No certificate: https is refused.
    None,
    /// The one with this fingerprint, and no other. Names and dates do not matter.
    Pin(Pin),
    /// What these authorities (PEM) signed for the name in the URL.
    Authorities(Vec<u8>),
    /// Any. The operator asked for it; the checksum still says which image it is.
    Any,
}

/// The fingerprint of a certificate.
///
/// # Errors
/// When it is none.
pub fn pin(text: &str) -> Result<Pin, String> {
    text.parse().map_err(|_| "it is no fingerprint of a certificate".to_owned())
}

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
    /// Before a further try; twice as long before the one after it.
    pub pause: Duration,
    /// For the whole image.
    pub deadline: Option<Duration>,
    /// Whether there is a resolver.
    pub resolve_names: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connect: Duration::from_secs(15),
            stall: Duration::from_secs(20),
            stall_bytes: 20 * 1024,
            tries: 5,
            pause: Duration::from_secs(1),
            deadline: None,
            resolve_names: true,
        }
    }
}

/// Where an image may come from, and how.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file.
    pub url: ImageUrl,
    /// Whose certificate a mirror must have.
    pub trust: Trust,
    /// Which hosts may be asked, also after a redirect.
    pub hosts: Hosts,
    /// How long and how often.
    pub limits: Limits,
    /// Headers that only the host of `url` gets: after a redirect to another one they are left out.
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
    /// What a request to `url` has in addition.
    pub(crate) fn headers_for(&self, url: &ImageUrl) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        let same = url.is_same_service(&self.url);
        self.headers.0.iter().filter(move |_| same)
    }

    pub(crate) fn connector(&self) -> Result<TlsConnector, SourceError> {
        let setup = |error: rustls::Error| SourceError::Internal(format!("TLS: {error}"));
        let accept = match &self.trust {
            Trust::None => Accept::None,
            Trust::Pin(pin) => Accept::Only(*pin),
            Trust::Any => Accept::Any,
            Trust::Authorities(pem) => return Ok(TlsConnector::from(Arc::new(signed_by(pem)?))),
        };
        Ok(TlsConnector::from(Arc::new(client_config("the mirror", accept).map_err(setup)?)))
    }
}

fn signed_by(pem: &[u8]) -> Result<ClientConfig, SourceError> {
    let problem = |problem: String| SourceError::Internal(format!("the authorities for images: {problem}"));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| problem(error.to_string()))?;
        roots.add(certificate).map_err(|error| problem(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(problem("no certificate in them".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone()).build();
    let verifier = verifier.map_err(|error| problem(error.to_string()))?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| problem(error.to_string()))?;
    Ok(builder.with_webpki_verifier(verifier).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_stay_on_their_host() {
        let url = |text: &str| text.parse::<ImageUrl>().expect(text);
        let source = Source {
            url: url("https://a/x"),
            trust: Trust::None,
            hosts: Hosts::default(),
            limits: Limits::default(),
            headers: RequestHeaders::of([("x-token", "secret")]).expect("headers"),
        };
        let count = |to: &str| source.headers_for(&url(to)).count();
        assert_eq!((count("https://a/x"), count("https://a:443/y?z")), (1, 1));
        for other in ["https://b/x", "https://a:444/x", "http://a/x", "https://a.b/x"] {
            assert_eq!(count(other), 0, "{other}");
        }
        assert!(!format!("{source:?}").contains("secret"));
        let problem = RequestHeaders::of([("x-token", "sec\nret")]).expect_err("two lines");
        assert!(!problem.contains("ret"), "{problem}");
    }
}
