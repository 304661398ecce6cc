//! The id of a request: in its answer, in the log, in what it causes.

use axum::http::{HeaderMap, HeaderValue};
use tracing::Span;
use tracing::field::Empty;
use uuid::Uuid;

/// Both headers of an answer that carry the id; Ironic sends both.
const HEADERS: [&str; 2] = ["x-openstack-request-id", "openstack-request-id"];
const PREFIX: &str = "req-";

/// The id of one request, made before anything of it is looked at.
#[derive(Debug, Clone)]
pub struct RequestId(String);

impl RequestId {
    /// A new one.
    pub fn generate() -> Self {
        Self(format!("{PREFIX}{}", Uuid::new_v4()))
    }

    /// `req-` and a UUID.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Put the id into the headers of an answer.
    pub fn put(&self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::from_str(&self.0) {
            HEADERS.iter().for_each(|name| drop(headers.insert(*name, value.clone())));
        }
    }

    /// The span of the request. [`record_path`] completes it once the path is known as a row of the API.
    pub fn span(&self, method: &str, headers: &HeaderMap) -> Span {
        // At the level of errors, so that also they are logged with the request where less than `info` is logged.
        tracing::error_span!(
            "request",
            request_id = %self.0,
            global_request_id = global_id(headers),
            method,
            path = Empty
        )
    }
}

/// Note in the span of the request which row of the API it is for: `/v1/nodes/{ident}`.
pub fn record_path(path: &str) {
    Span::current().record("path", path);
}

/// The id under which the client, another service of OpenStack, works on what it asks for here. As in Ironic
/// (oslo.middleware): taken from the header if it is well-formed, logged, never sent back.
fn global_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(HEADERS[0])?.to_str().ok()?;
    let uuid = Uuid::try_parse(id.strip_prefix(PREFIX)?).ok()?;
    (uuid.as_hyphenated().to_string() == id[PREFIX.len()..]).then_some(id)
}
