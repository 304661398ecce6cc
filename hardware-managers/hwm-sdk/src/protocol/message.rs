//! A message: JSON-RPC 2.0 as far as this protocol uses it.

use super::{Code, LINE_MAX, Method, Notification, RpcError, TooLong};
use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A message of either side.
#[derive(Debug, Clone)]
pub enum Message {
    /// A call with an answer.
    Request {
        /// Names the call among those of its side that are not answered yet.
        id: u64,
        /// Method.
        method: String,
        /// An object, not read further yet.
        params: Box<RawValue>,
    },
    /// A call without an answer.
    Notification {
        /// Method.
        method: String,
        /// An object, not read further yet.
        params: Box<RawValue>,
    },
    /// The result of a call.
    Answer {
        /// Of the call.
        id: u64,
        /// An object, not read further yet.
        result: Box<RawValue>,
    },
    /// The error of a call.
    Error {
        /// Of the call; `None` when the line could not be parsed far enough to find it.
        id: Option<u64>,
        /// What was wrong.
        error: RpcError,
    },
}

/// Why a line is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// JSON, and no message.
    #[error("no JSON-RPC 2.0 message: {0}")]
    Message(String),
}

impl From<Malformed> for RpcError {
    fn from(malformed: Malformed) -> Self {
        let code = if matches!(malformed, Malformed::Json(_)) { Code::Parse } else { Code::Invalid };
        RpcError::new(code, malformed.to_string())
    }
}

/// All members that a message can have.
#[derive(Serialize, Deserialize)]
struct Envelope {
    jsonrpc: String,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    id: Option<Option<u64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    params: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
}

/// Distinguishes `"id": null` from no id.
fn present<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(input).map(Some)
}

impl Message {
    /// A call.
    pub fn request<M: Method>(id: u64, params: &M::Params) -> Self {
        Self::Request { id, method: M::NAME.to_owned(), params: raw(params) }
    }

    /// A notification.
    pub fn notification<N: Notification>(params: &N::Params) -> Self {
        Self::Notification { method: N::NAME.to_owned(), params: raw(params) }
    }

    /// The result of a call.
    pub fn answer<M: Method>(id: u64, answer: &M::Answer) -> Self {
        Self::Answer { id, result: raw(answer) }
    }

    /// Reads a line.
    ///
    /// # Errors
    /// [`Malformed`]. Members that this version does not know are ignored.
    pub fn read(line: &[u8]) -> Result<Self, Malformed> {
        let wrong = |what: &str| Err(Malformed::Message(what.to_owned()));
        let envelope: Envelope = serde_json::from_slice(line).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => Malformed::Message(error.to_string()),
            _ => Malformed::Json(error.to_string()),
        })?;
        if envelope.jsonrpc != "2.0" {
            return wrong("\"jsonrpc\" must be \"2.0\"");
        }
        if envelope.params.iter().chain(&envelope.result).any(|raw| !raw.get().starts_with('{')) {
            return wrong("\"params\" and \"result\" must be objects");
        }
        let params = envelope.params.unwrap_or_else(|| raw(&super::Empty {}));
        match (envelope.id, envelope.method, envelope.result, envelope.error) {
            (Some(Some(id)), Some(method), None, None) => Ok(Self::Request { id, method, params }),
            (None, Some(method), None, None) => Ok(Self::Notification { method, params }),
            (Some(Some(id)), None, Some(result), None) => Ok(Self::Answer { id, result }),
            (Some(id), None, None, Some(error)) => Ok(Self::Error { id, error }),
            _ => wrong("it must have \"method\", or \"id\" with either \"result\" or \"error\""),
        }
    }

    /// The line, with its line feed.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn line(&self) -> Result<Vec<u8>, TooLong> {
        let empty = || Envelope {
            jsonrpc: "2.0".to_owned(),
            id: None,
            method: None,
            params: None,
            result: None,
            error: None,
        };
        let envelope = match self.clone() {
            Self::Request { id, method, params } => {
                Envelope { id: Some(Some(id)), method: Some(method), params: Some(params), ..empty() }
            }
            Self::Notification { method, params } => {
                Envelope { method: Some(method), params: Some(params), ..empty() }
            }
            Self::Answer { id, result } => Envelope { id: Some(Some(id)), result: Some(result), ..empty() },
            Self::Error { id, error } => Envelope { id: Some(id), error: Some(error), ..empty() },
        };
        let mut line = serde_json::to_vec(&envelope).expect("strings, numbers and JSON are written");
        line.push(b'\n');
        if line.len() > LINE_MAX { Err(TooLong) } else { Ok(line) }
    }
}

/// Reads params or a result.
///
/// # Errors
/// [`Code::Params`], naming the method and what is wrong.
pub fn decode<T: DeserializeOwned>(what: &str, raw: &RawValue) -> Result<T, RpcError> {
    serde_json::from_str(raw.get()).map_err(|error| RpcError::new(Code::Params, format!("{what}: {error}")))
}

/// The wire types have string keys and finite numbers only: they are always written.
fn raw<T: Serialize>(value: &T) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("a wire type is written")
}
