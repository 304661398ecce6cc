//! The answers of `/v1/anneal/discovery`.

use crate::openapi::shape::Shape;
use crate::openapi::types::{closed, text, text_or_null};
use serde_json::{Value, json};

/// What is known of a method and a path.
pub fn known((method, path): (&str, &str)) -> Option<Shape> {
    let new = Shape::new;
    Some(match (method, path) {
        ("GET", "/v1/anneal/discovery") => {
            let list = json!({"machines": {"type": "array", "items": machine()}});
            new().responds(200, closed(list, &["machines"]))
        }
        ("POST", "/v1/anneal/discovery/{machine}/approve" | "/v1/anneal/discovery/{machine}/reject") => {
            new().optional_body(closed(json!({}), &[])).responds(200, machine())
        }
        ("DELETE", "/v1/anneal/discovery/{machine}") => new().empty(204),
        _ => return None,
    })
}

/// One machine.
fn machine() -> Value {
    let fields = json!({
        "uuid": {"type": "string", "format": "uuid"},
        "state": {"enum": ["booted", "waiting", "approved", "rejected"]},
        "mac": text(),
        "macs": {"type": "array", "items": text()},
        "address": text(),
        "node_uuid": {"type": ["string", "null"], "format": "uuid"},
        "node_name": text_or_null(),
        "booted_at": {"type": "string", "format": "date-time"},
        "waits_until": {"type": "string", "format": "date-time"},
        "decided_at": {"type": ["string", "null"], "format": "date-time"},
    });
    const MEMBERS: [&str; 10] = [
        "uuid",
        "state",
        "mac",
        "macs",
        "address",
        "node_uuid",
        "node_name",
        "booted_at",
        "waits_until",
        "decided_at",
    ];
    closed(fields, &MEMBERS)
}
