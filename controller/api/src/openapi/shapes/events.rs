//! The answers of `/v1/anneal/events` and `/v1/anneal/webhooks`.

use crate::openapi::types::{closed, text, text_or_null};
use model::{EventKind, ProvisionState, ResourceKind};
use serde_json::{Value, json};

/// A page of events.
pub(super) fn page() -> Value {
    let events = json!({"type": "array", "items": event()});
    let fields = json!({"events": events, "next": text(), "more": {"type": "boolean"}});
    closed(fields, &["events", "next", "more"])
}

fn event() -> Value {
    let uuid = || json!({"type": "string", "format": "uuid"});
    let states = ProvisionState::ALL.iter().map(|state| Value::from(state.as_str()));
    let states: Vec<Value> = states.chain([Value::Null]).collect();
    let state = || json!({"enum": states});
    let certificate = closed(
        json!({"id": text(), "number": {"type": "integer"}, "finding": text()}),
        &["id", "number", "finding"],
    );
    let kinds = ResourceKind::ALL.map(ResourceKind::as_str);
    let resource = closed(
        json!({"kind": {"type": "string", "enum": kinds}, "uuid": uuid(), "name": text_or_null()}),
        &["kind", "uuid", "name"],
    );
    let bundle = closed(
        json!({"name": text(), "version": text(), "scope": text(), "digest": text()}),
        &["name", "version", "scope", "digest"],
    );
    let mut fields = json!({
        "cursor": text(),
        "uuid": uuid(),
        "at": {"type": "string", "format": "date-time"},
        "type": {"type": "string", "enum": EventKind::ALL.map(EventKind::as_str)},
        "severity": {"type": "string", "enum": ["INFO", "ERROR"]},
        "text": text(),
        "node_uuid": {"type": ["string", "null"], "format": "uuid"},
        "node_name": text_or_null(),
        "previous_provision_state": state(),
        "provision_state": state(),
        "target_provision_state": state(),
        "command_id": text_or_null(),
        "certificate": {"anyOf": [certificate, {"type": "null"}]},
        "resource": {"anyOf": [resource, {"type": "null"}]},
        "request_id": text_or_null(),
        "user": text_or_null(),
        "project": text_or_null(),
        "address": text_or_null(),
    });
    let members: Vec<String> = fields.as_object().into_iter().flat_map(|all| all.keys().cloned()).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    // Only events of bundles have it.
    fields["bundle"] = bundle;
    closed(fields, &members)
}

/// How far webhooks are.
pub(super) fn webhooks() -> Value {
    let fields = json!({
        "name": text(),
        "after": text(),
        "tries": {"type": "integer"},
        "next_try_at": {"type": ["string", "null"], "format": "date-time"},
        "last_error": text_or_null(),
        "conductor": text_or_null(),
    });
    let webhook = closed(fields, &["name", "after", "tries", "next_try_at", "last_error", "conductor"]);
    closed(json!({"webhooks": {"type": "array", "items": webhook}}), &["webhooks"])
}

/// Dead letters of a webhook.
pub(super) fn dead_letters() -> Value {
    let fields = json!({
        "place": {"type": "integer"},
        "event": event(),
        "given_up_at": {"type": "string", "format": "date-time"},
        "tries": {"type": "integer"},
        "error": text(),
        "retry": {"type": "boolean"},
    });
    let letter = closed(fields, &["place", "event", "given_up_at", "tries", "error", "retry"]);
    closed(json!({"dead_letters": {"type": "array", "items": letter}}), &["dead_letters"])
}
