//! Endpoints of nodes.

use crate::driver_queries::INTERFACES;
use crate::microversion::target_since;
use crate::nodes::{filter, states};
use crate::openapi::shape::Shape;
use crate::openapi::types::{self, closed, node_field, object, reference, text, text_or_null, texts};
use crate::page;
use serde_json::{Map, Value, json};

/// Targets of the verbs, as Ironic's API reference spells them.
const TARGETS: [&str; 17] = [
    "abort",
    "active",
    "adopt",
    "available",
    "clean",
    "deleted",
    "deploy",
    "inspect",
    "manage",
    "provide",
    "rebuild",
    "rescue",
    "service",
    "undeploy",
    "unhold",
    "unrescue",
    "cleaned",
];

/// What is known of a method and a path.
pub fn known((method, path): (&str, &str)) -> Option<Shape> {
    let new = Shape::new;
    Some(match (method, path) {
        ("GET", "/v1/nodes") => new()
            .filters(&filter::FILTERS)
            .query(&page::ARGS)
            .filters(&[("fields", 8)])
            .responds(200, types::page("nodes", "Node")),
        ("GET", "/v1/nodes/detail") => {
            new().filters(&filter::FILTERS).query(&page::ARGS).responds(200, types::page("nodes", "Node"))
        }
        ("POST", "/v1/nodes") => new().body(reference("NewNode")).responds(201, reference("Node")),
        ("GET", "/v1/nodes/{ident}") => new().filters(&[("fields", 8)]).responds(200, reference("Node")),
        ("PATCH", "/v1/nodes/{ident}") => {
            new().filters(&[("reset_interfaces", 45)]).patch().responds(200, reference("Node"))
        }
        ("GET", "/v1/nodes/validate") => new().query(&["node", "node_uuid"]).responds(200, validity()),
        ("GET", "/v1/nodes/{ident}/validate") => new().responds(200, validity()),
        ("GET", "/v1/nodes/{ident}/states") => new().responds(200, shown_states()),
        ("PUT", "/v1/nodes/{ident}/states/provision") => new().body(provision()).empty(202),
        ("PUT", "/v1/nodes/{ident}/states/power") => new().body(types::power()).empty(202),
        ("PUT", "/v1/nodes/{ident}/maintenance") => {
            let reason = closed(json!({"reason": text_or_null()}), &[]);
            new().query(&["reason"]).optional_body(reason).empty(202)
        }
        ("DELETE", "/v1/nodes/{ident}/maintenance") => new().empty(202),
        ("GET", "/v1/nodes/{ident}/management/boot_device") => {
            let persistent = json!({"type": ["boolean", "null"]});
            let fields = json!({"boot_device": text_or_null(), "persistent": persistent});
            new().responds(200, closed(fields, &["boot_device", "persistent"]))
        }
        ("PUT", "/v1/nodes/{ident}/management/boot_device") => {
            let persistent = json!({"type": ["boolean", "string", "null"]});
            let fields = json!({"boot_device": text(), "persistent": persistent});
            new().query(&["boot_device", "persistent"]).optional_body(closed(fields, &[])).empty(204)
        }
        ("GET", "/v1/nodes/{ident}/management/boot_device/supported") => {
            let devices = closed(json!({"supported_boot_devices": texts()}), &["supported_boot_devices"]);
            new().responds(200, devices)
        }
        ("GET", "/v1/nodes/{ident}/inventory") => {
            let fields = json!({"inventory": object(), "plugin_data": object()});
            new().responds(200, closed(fields, &["inventory", "plugin_data"]))
        }
        ("GET", "/v1/nodes/{ident}/history") => {
            let events = json!({"type": "array", "items": event()});
            let fields = json!({"history": events, "next": text()});
            new().query(&page::ARGS).query(&["detail"]).responds(200, closed(fields, &["history"]))
        }
        ("GET", "/v1/nodes/{ident}/history/{event}") => new().responds(200, event()),
        ("GET", "/v1/nodes/{ident}/traits") => {
            new().responds(200, closed(json!({"traits": texts()}), &["traits"]))
        }
        ("PUT", "/v1/nodes/{ident}/traits") => {
            new().body(closed(json!({"traits": texts()}), &["traits"])).empty(204)
        }
        ("PUT", "/v1/nodes/{ident}/traits/{trait}") => new().empty(204),
        ("DELETE", path) if path.starts_with("/v1/nodes/{ident}/traits") => new().empty(204),
        ("DELETE", "/v1/nodes/{ident}") => new().empty(204),
        (
            "GET",
            "/v1/nodes/{ident}/cleaning/steps"
            | "/v1/nodes/{ident}/deploy/steps"
            | "/v1/nodes/{ident}/service/steps",
        ) => {
            let steps = json!({"type": "array", "items": offered_step()});
            let unknown = closed(json!({"message": text(), "steps": steps}), &["message", "steps"]);
            new().query(&["min_priority"]).responds(200, steps).responds(202, unknown)
        }
        _ => return of_ours(method, path),
    })
}

/// What is known of the endpoints that Ironic does not have.
fn of_ours(method: &str, path: &str) -> Option<Shape> {
    let new = Shape::new;
    Some(match (method, path) {
        ("GET", "/v1/anneal/nodes/{ident}/erase_plan") => new().query(&["step"]).responds(200, object()),
        ("GET", "/v1/anneal/nodes/{ident}/disks") => new().responds(200, known_disks()),
        ("GET", "/v1/anneal/nodes/{ident}/measurements") => new().responds(200, measurements()),
        ("POST", "/v1/anneal/nodes/{ident}/measurements/accept") => {
            new().body(closed(json!({"id": text()}), &["id"])).responds(200, measurements())
        }
        ("DELETE", "/v1/anneal/nodes/{ident}/measurements") => new().empty(204),
        ("GET", "/v1/anneal/nodes/{ident}/why") => new().responds(200, super::why::answer()),
        ("POST", "/v1/anneal/nodes/{ident}/disks/retire") => {
            let fields = json!({"disk": text(), "reason": text()});
            new().body(closed(fields, &["disk", "reason"])).responds(200, known_disks())
        }
        ("POST", "/v1/anneal/nodes/{ident}/erase_plan") => {
            let args = json!({"type": ["object", "null"]});
            let fields = json!({"step": text_or_null(), "args": args});
            new().optional_body(closed(fields, &[])).responds(200, object())
        }
        _ => return None,
    })
}

/// The disks that the next erase must report, and those that were retired since the last certificate.
fn known_disks() -> Value {
    let disk = || json!({"serial": text_or_null(), "wwn": text_or_null(), "model": text_or_null()});
    let mut retired = disk();
    retired["reason"] = text();
    retired["retired_at"] = text();
    let known = closed(disk(), &["serial", "wwn", "model"]);
    let retired = closed(retired, &["serial", "wwn", "model", "reason", "retired_at"]);
    let list = |items: Value| json!({"type": "array", "items": items});
    closed(json!({"known": list(known), "retired": list(retired)}), &["known", "retired"])
}

/// The TPM of a node, what is recorded, and how the last boot differs.
fn measurements() -> Value {
    let nullable = || json!({"type": ["object", "null"]});
    let members = ["tpm", "recorded", "changed"];
    closed(json!({"tpm": nullable(), "recorded": nullable(), "changed": nullable()}), &members)
}

/// The body of a verb.
fn provision() -> Value {
    let steps = json!({"type": ["array", "null"], "items": reference("Step")});
    let since: Map<_, _> = TARGETS
        .iter()
        .map(|target| ((*target).to_owned(), format!("1.{}", target_since(target)).into()))
        .collect();
    let fields = json!({
        "target": {"type": "string", "enum": TARGETS, "x-since": since},
        "configdrive": {"type": ["object", "string", "null"]},
        "clean_steps": steps,
        "deploy_steps": steps,
        "service_steps": steps,
        "rescue_password": text_or_null(),
        "disable_ramdisk": {"type": ["boolean", "string", "null"]},
        "runbook": text_or_null(),
        "reason": text_or_null(),
    });
    closed(fields, &["target"])
}

/// What `validate` says of each interface.
fn validity() -> Value {
    let entry =
        closed(json!({"result": {"type": ["boolean", "null"]}, "reason": text_or_null()}), &["result"]);
    let fields: Map<_, _> =
        INTERFACES.iter().map(|interface| ((*interface).to_owned(), entry.clone())).collect();
    closed(Value::Object(fields), &INTERFACES)
}

fn shown_states() -> Value {
    let fields: Map<_, _> =
        states::SINCE.iter().map(|(name, _)| ((*name).to_owned(), node_field(name))).collect();
    closed(Value::Object(fields), &["provision_state", "power_state"])
}

/// An event of the history; without detail only some of it.
fn event() -> Value {
    let fields = json!({
        "uuid": {"type": "string", "format": "uuid"},
        "created_at": {"type": "string", "format": "date-time"},
        "severity": {"type": "string", "enum": ["INFO", "ERROR"]},
        "event": text(),
        "links": reference("Links"),
        "event_type": text(),
        "conductor": text_or_null(),
        "user": text_or_null(),
        "project": text_or_null(),
        "state": text_or_null(),
        "target_provision_state": text_or_null(),
        "duration_seconds": {"type": ["number", "null"]},
        "anneal": closed(json!({"address": text_or_null(), "request_id": text_or_null()}), &["address", "request_id"]),
    });
    closed(fields, &["uuid", "created_at", "severity", "event", "links"])
}

/// A step as a node offers it.
fn offered_step() -> Value {
    let argument = closed(
        json!({
            "name": text(),
            "description": text_or_null(),
            "required": {"type": "boolean"},
            "schema": {},
        }),
        &["name", "description", "required"],
    );
    let fields = json!({
        "interface": text(),
        "step": text(),
        "priority": {"type": "number"},
        "abortable": {"type": "boolean"},
        "args": {"type": "array", "items": argument},
    });
    closed(fields, &["interface", "step", "priority", "abortable", "args"])
}

#[cfg(test)]
mod tests {
    use super::TARGETS;
    use model::Verb;

    #[test]
    fn the_documents_targets_are_verbs() {
        let unknown: Vec<_> = TARGETS.iter().filter(|target| Verb::parse_target(target).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
