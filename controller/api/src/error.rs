//! Errors as Ironic reports them: the one file that maps errors to statuses and bodies.
//!
//! Ironic encodes twice: `{"error_message": "<a string that holds JSON>"}`. What its controllers raise holds
//! `faultcode, faultstring, debuginfo`; what its framework raises (no such path, wrong method, version)
//! holds `code, title, description`. Clients read both.

use crate::driver_queries::DriverError;
use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};
use store::{StoreError, Unique};

/// An answer other than success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// One sentence for the client.
    pub message: String,
    shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Fault,
    Plain,
}

/// Result of a handler.
pub type Reply = Result<Response<Body>, ApiError>;

/// Put into the extensions of an answer whose body is already Ironic's.
#[derive(Clone, Copy)]
pub struct Shaped;

impl ApiError {
    /// As raised by Ironic's controllers.
    pub fn client(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), shape: Shape::Fault }
    }

    /// As raised by Ironic's web framework.
    pub fn plain(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), shape: Shape::Plain }
    }

    /// 400.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::client(400, message)
    }

    /// 409.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::client(409, message)
    }

    /// 406 without details.
    pub fn not_acceptable() -> Self {
        Self::client(406, "Request not acceptable.")
    }

    /// 500: an internal error, named.
    pub fn internal(what: &str) -> Self {
        tracing::error!("internal: {what}");
        Self::client(500, format!("internal: {what}"))
    }

    /// 404 that does not name the missing object.
    pub fn not_found() -> Self {
        Self::client(404, "Resource could not be found.")
    }

    /// 404 for a node.
    pub fn no_node(ident: impl std::fmt::Display) -> Self {
        Self::client(404, format!("Node {ident} could not be found."))
    }

    /// 404 for a bundle.
    pub fn no_bundle(digest: &str) -> Self {
        Self::client(404, format!("Bundle {digest} could not be found."))
    }

    /// 404 for a driver.
    pub fn no_driver(name: &str) -> Self {
        Self::client(404, format!("Could not find the following driver(s) or hardware type(s): {name}."))
    }

    /// 400 instead of 404: what is not found stands in the body or the query, not in the path.
    pub fn of_body(self) -> Self {
        if self.status == 404 { Self::invalid(self.message) } else { self }
    }

    /// 403 that names the policy, in Ironic's words.
    pub fn forbidden(policy: &str) -> Self {
        Self::client(403, format!("Access was denied to the following resource: {policy}"))
    }

    /// 409: a conductor works on the node.
    pub fn locked(node: impl std::fmt::Display, host: &str) -> Self {
        Self::conflict(format!(
            "Node {node} is locked by host {host}, please retry after the current operation is completed."
        ))
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::NotFound { what, ident } => {
                Self::client(404, format!("{what} {ident} could not be found."))
            }
            StoreError::Duplicate { what, value } => Self::conflict(match what {
                Unique::NodeName => format!("A node with name {value} already exists."),
                Unique::NodeUuid => format!("A node with UUID {value} already exists."),
                Unique::InstanceUuid => format!(
                    "Instance {value} is already associated with a node, it cannot be associated with this \
                     other node"
                ),
                Unique::ResourceUuid | Unique::ResourceName | Unique::ResourceKey => error.to_string(),
            }),
            StoreError::Stale(node) => {
                Self::conflict(format!("Node {node} was changed by another request, please retry."))
            }
            StoreError::CursorGone { oldest } => Self::client(
                410,
                format!(
                    "The events behind this cursor are not kept any more, or it is of another log (a restored \
                     database). The oldest events that are kept come after={oldest}, and without after."
                ),
            ),
            StoreError::TooSlow(limit) => Self::invalid(format!(
                "The list was not found within {} s, because its filters or its sort_key make the controller look at \
                 too many items (description_contains and sort keys without an index look at all that the other \
                 filters let pass). Add a filter that fewer items pass, or take another sort_key.",
                limit.as_secs_f64()
            )),
            StoreError::TooLarge { .. } => Self::client(413, error.to_string()),
            StoreError::Failed { .. } => {
                tracing::error!(error = %error.chain(), "the store failed");
                Self::client(500, "The controller could not read or write its database; see its log.")
            }
        }
    }
}

impl From<DriverError> for ApiError {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::Invalid(message) => Self::invalid(message),
            DriverError::Unsupported { .. } => Self::invalid(error.to_string()),
            DriverError::Busy(message) => Self::conflict(message),
            DriverError::Bmc(message) | DriverError::Agent(message) => Self::client(503, message),
        }
    }
}

#[derive(Serialize)]
struct Outer {
    error_message: String,
}

#[derive(Serialize)]
struct Fault<'a> {
    faultcode: &'a str,
    faultstring: &'a str,
    debuginfo: Option<&'a str>,
}

#[derive(Serialize)]
struct Plain<'a> {
    code: u16,
    title: &'a str,
    description: &'a str,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let inner = match self.shape {
            Shape::Fault => python_json(&Fault {
                faultcode: if status.is_server_error() { "Server" } else { "Client" },
                faultstring: &self.message,
                debuginfo: None,
            }),
            Shape::Plain => python_json(&Plain {
                code: status.as_u16(),
                title: status.canonical_reason().unwrap_or("Error"),
                description: &self.message,
            }),
        };
        let body = python_json(&Outer { error_message: inner });
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        response.extensions_mut().insert(Shaped);
        response
    }
}

/// JSON as Python's `json.dumps` writes it: a space after `,` and `:`, and no byte above ASCII.
pub fn python_json<T: Serialize>(value: &T) -> String {
    let mut bytes = Vec::new();
    match value.serialize(&mut Serializer::with_formatter(&mut bytes, Python)) {
        Ok(()) => String::from_utf8(bytes).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        for character in fragment.chars() {
            if character.is_ascii() {
                write!(writer, "{character}")?;
            } else {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_written_as_python_does() {
        let text = python_json(&serde_json::json!({"a": [1, "ä\"\u{1f600}"], "b": null}));
        assert_eq!(text, r#"{"a": [1, "\u00e4\"\ud83d\ude00"], "b": null}"#);
    }
}
