//! Requests to the controller's API, as agents and users send them.

use axum::body::Body;
use axum::http;
use serde_json::Value;

/// A request, which can be sent twice.
#[derive(Debug, Clone)]
pub struct Request {
    method: &'static str,
    path: String,
    version: &'static str,
    body: Option<Value>,
}

/// An answer, read whole.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Body.
    pub bytes: Vec<u8>,
}

impl Request {
    /// A request of a user, in the newest version.
    pub fn new(method: &'static str, path: &str) -> Self {
        Self { method, path: path.to_owned(), version: "1.115", body: None }
    }

    /// In this microversion.
    #[must_use]
    pub fn at(self, version: &'static str) -> Self {
        Self { version, ..self }
    }

    /// With a body.
    #[must_use]
    pub fn with(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    /// The request for the router.
    pub fn build(&self) -> Result<http::Request<Body>, http::Error> {
        let body = self.body.as_ref().map_or_else(Body::empty, |body| Body::from(body.to_string()));
        http::Request::builder()
            .method(self.method)
            .uri(&self.path)
            .header(agent_protocol::MICROVERSION_HEADER, self.version)
            .header("content-type", "application/json")
            .body(body)
    }
}

impl Answer {
    /// Whether it was done, or begun.
    pub fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }
}
