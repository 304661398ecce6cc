//! What is known of endpoints, one file a room of the API. Fields, filters and words are taken from the tables that the
//! handlers read; what a handler reads without a table is named here, and the fuzzer finds what is not true.

mod agents;
mod nodes;
mod others;
mod ports;

use super::shape::Shape;
use super::types;
use crate::endpoint::Endpoint;
use serde_json::{Value, json};

/// What is known of an endpoint, if anything.
pub fn known(endpoint: &Endpoint) -> Option<Shape> {
    let row = (endpoint.method.as_str(), endpoint.path);
    nodes::known(row)
        .or_else(|| ports::known(row))
        .or_else(|| others::known(row))
        .or_else(|| agents::known(row))
}

fn object() -> Value {
    json!({"type": "object"})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn text_or_null() -> Value {
    json!({"type": ["string", "null"]})
}

fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}
