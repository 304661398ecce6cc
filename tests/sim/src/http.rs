//! Requests to the controller's API, as agents and users send them.

use axum::body::Body;
use axum::http;
use model::boot::BootNonce;
use room::Kind;
use serde_json::Value;

/// A request, which can be sent twice.
#[derive(Debug, Clone)]
pub struct Request {
    method: &'static str,
    path: String,
    version: &'static str,
    body: Option<Value>,
    nonce: Option<BootNonce>,
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
        Self { method, path: path.to_owned(), version: "1.115", body: None, nonce: None }
    }

    /// Whether an agent asks for its node.
    pub fn is_lookup(&self) -> bool {
        self.path.contains("/v1/lookup")
    }

    /// In this microversion.
    #[must_use]
    pub fn at(self, version: &'static str) -> Self {
        Self { version, ..self }
    }

    /// Of an agent whose boot script had this nonce: ours sends a header, ironic-python-agent what its URL begins with.
    #[must_use]
    pub fn showing(mut self, nonce: &BootNonce, kind: Kind) -> Self {
        match kind {
            Kind::Anneal => self.nonce = Some(nonce.clone()),
            Kind::Ipa => self.path = format!("{}{}{}", api::NONCE_PATH, nonce.expose(), self.path),
        }
        self
    }

    /// With a body.
    #[must_use]
    pub fn with(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    /// The request for the router.
    pub fn build(&self) -> Result<http::Request<Body>, http::Error> {
        let body = self.body.as_ref().map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request = http::Request::builder();
        if let Some(nonce) = &self.nonce {
            request = request.header(agent_protocol::NONCE_HEADER, nonce.expose());
        }
        request
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
