//! What agents call. Their answers are `agent-protocol`'s, whose exact bytes its own tests hold.

use crate::openapi::shape::Shape;
use crate::openapi::types::{closed, object, text, text_or_null};
use crate::ramdisk::heartbeat::ARGUMENTS;
use serde_json::{Map, Value, json};

/// What is known of a method and a path.
pub fn known((method, path): (&str, &str)) -> Option<Shape> {
    let new = Shape::new;
    Some(match (method, path) {
        ("GET", "/v1/lookup") => {
            let told = closed(json!({"node": object(), "config": object()}), &["node", "config"]);
            new().query(&["addresses", "node_uuid", "anneal_boot_id"]).responds(200, told)
        }
        ("POST", "/v1/heartbeat/{ident}") => new().body(heartbeat()).empty(202),
        ("POST", "/v1/continue_inspection") => {
            new().query(&["node_uuid"]).body(report()).responds(202, object())
        }
        _ => return None,
    })
}

fn heartbeat() -> Value {
    let fields: Map<_, _> = ARGUMENTS
        .iter()
        .map(|name| {
            let schema = match *name {
                "callback_url" => text(),
                "anneal" => json!({"type": ["object", "null"]}),
                _ => text_or_null(),
            };
            ((*name).to_owned(), schema)
        })
        .collect();
    closed(Value::Object(fields), &["callback_url"])
}

/// What an inspection found: an inventory, and whatever else.
fn report() -> Value {
    let interface = json!({
        "type": "object",
        "properties": {"mac_address": text()},
        "required": ["mac_address"],
    });
    let inventory = json!({
        "type": "object",
        "properties": {
            "interfaces": {"type": "array", "minItems": 1, "items": interface},
            "bmc_address": text_or_null(),
            "bmc_v6address": text_or_null(),
        },
        "required": ["interfaces"],
    });
    json!({"type": "object", "properties": {"inventory": inventory}, "required": ["inventory"]})
}
