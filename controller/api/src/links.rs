//! Links, as every resource of Ironic carries them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

/// Makes links below one base.
#[derive(Debug, Clone)]
pub struct Links {
    base: String,
}

impl Links {
    /// With the configured endpoint, or else with the host the client called.
    pub fn new(endpoint: &str, host: Option<&str>) -> Self {
        let base = match (endpoint, host) {
            ("", Some(host)) => format!("http://{host}"),
            ("", None) => "http://localhost".to_owned(),
            (endpoint, _) => endpoint.trim_end_matches('/').to_owned(),
        };
        Self { base }
    }

    /// URL of a path below `/v1`.
    pub fn v1(&self, path: &str) -> String {
        format!("{}/v1/{path}", self.base)
    }

    /// The pair of links of a resource.
    pub fn pair(&self, path: &str) -> Value {
        json!([
            {"href": self.v1(path), "rel": "self"},
            {"href": format!("{}/{path}", self.base), "rel": "bookmark"},
        ])
    }
}

/// What may stand in a query as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b',');

/// A text as it may stand in a query.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}
