//! Endpoints that agents call. Their answers are types of `agent-protocol`, whose tests fix the exact bytes.

use crate::openapi::shape::Shape;
use crate::openapi::types::{closed, object, text, text_or_null, texts};
use crate::ramdisk::heartbeat::{ARGUMENTS, IDENT};
use serde_json::{Map, Value, json};

/// What is known of a method and a path.
pub fn known((method, path): (&str, &str)) -> Option<Shape> {
    let new = Shape::new;
    Some(match (method, path) {
        ("GET", "/v1/lookup") => {
            let known = closed(json!({"node": object(), "config": object()}), &["node", "config"]);
            let discovered = closed(json!({"anneal_discovery": object()}), &["anneal_discovery"]);
            let answer = json!({"anyOf": [known, discovered]});
            new().query(&["addresses", "node_uuid", "anneal_boot_id"]).responds(200, answer)
        }
        ("POST", "/v1/heartbeat/{ident}") => new().body(heartbeat(&[])).empty(202),
        ("POST", "/v1/heartbeat") => new().body(heartbeat(&[IDENT])).empty(202),
        ("POST", "/v1/continue_inspection") => {
            new().query(&["node_uuid", "anneal_boot_id"]).body(report()).responds(202, object())
        }
        ("POST", "/v1/anneal/boot_proof") => {
            let answer = ["nonce", "credential", "secret", "pcrs"];
            let pcrs = json!({"type": "array", "items": {"type": "integer"}});
            let fields = json!({"nonce": text(), "credential": text(), "secret": text(), "pcrs": pcrs});
            new().body(proof_start()).responds(200, closed(fields, &answer))
        }
        ("POST", "/v1/anneal/boot_proof/answer") => new().body(proof_answer()).empty(204),
        _ => return None,
    })
}

/// With these names that are in no path.
fn heartbeat(named: &[&str]) -> Value {
    let fields: Map<_, _> = named
        .iter()
        .chain(&ARGUMENTS)
        .map(|name| {
            let schema = match *name {
                "callback_url" | IDENT => text(),
                "anneal" => json!({"type": ["object", "null"]}),
                _ => text_or_null(),
            };
            ((*name).to_owned(), schema)
        })
        .collect();
    closed(Value::Object(fields), &[named, &["callback_url"]].concat())
}

/// Keys of a TPM, and whose they are.
fn proof_start() -> Value {
    let names = ["addresses", "boot_id", "endorsement_key", "attestation_key"];
    let fields = json!({
        "addresses": texts(),
        "boot_id": text(),
        "endorsement_key": text(),
        "endorsement_certificate": text_or_null(),
        "attestation_key": text(),
    });
    object_with(fields, &names)
}

/// What a TPM proves.
fn proof_answer() -> Value {
    let texts = ["nonce", "activated", "quote", "signature", "event_log", "tls_certificate", "evidence_key"];
    let mut fields: Map<_, _> = texts.iter().map(|name| ((*name).to_owned(), text())).collect();
    fields.insert("start".to_owned(), proof_start());
    fields.insert("pcrs".to_owned(), object());
    let names = [&texts[..], &["start", "pcrs"]].concat();
    object_with(Value::Object(fields), &names)
}

/// Of an agent that may send more.
fn object_with(fields: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": fields, "required": required})
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
