//! The answer of `/v1/anneal/nodes/{ident}/why`.

use crate::openapi::types::{closed, text, text_or_null};
use model::ProvisionState;
use model::why::{Awaited, By};
use serde_json::{Value, json};

/// What the node waits for, what was tried, what happens next, and what can be done.
pub(super) fn answer() -> Value {
    let instant = || json!({"type": ["string", "null"], "format": "date-time"});
    let seconds = || json!({"type": ["integer", "null"]});
    let list = |items: Value| json!({"type": "array", "items": items});
    let awaited = Awaited::ALL.map(Awaited::as_str);
    let waits = closed(
        json!({"what": {"type": "string", "enum": awaited}, "text": text(), "since": instant(), "age_s": seconds(),
               "until": instant(), "in_s": seconds()}),
        &["what", "text", "since", "age_s", "until", "in_s"],
    );
    let tried =
        closed(json!({"text": text(), "at": instant(), "age_s": seconds()}), &["text", "at", "age_s"]);
    let by = [By::Controller, By::User].map(By::as_str);
    let next = closed(
        json!({"by": {"type": "string", "enum": by}, "text": text(), "at": instant(), "in_s": seconds()}),
        &["by", "text", "at", "in_s"],
    );
    let command = closed(json!({"command": text(), "does": text()}), &["command", "does"]);
    let help = closed(json!({"text": text(), "commands": list(command)}), &["text", "commands"]);
    let states = ProvisionState::ALL.map(ProvisionState::as_str);
    let fields = json!({
        "uuid": {"type": "string", "format": "uuid"},
        "name": text_or_null(),
        "provision_state": {"type": "string", "enum": states},
        "now": {"type": "string", "format": "date-time"},
        "waits_for": waits,
        "tried": list(tried),
        "next": next,
        "help": help,
    });
    closed(fields, &["uuid", "name", "provision_state", "now", "waits_for", "tried", "next", "help"])
}
