//! Endpoints of drivers, deploy templates, bundles, certificates, and the documents at the root.

use crate::driver_queries::INTERFACES;
use crate::openapi::shape::Shape;
use crate::openapi::types::{self, closed, object, reference, text, text_or_null};
use crate::page;
use serde_json::{Map, Value, json};

/// What is known of a method and a path.
pub fn known((method, path): (&str, &str)) -> Option<Shape> {
    let new = Shape::new;
    Some(match (method, path) {
        ("GET", "/v1/healthcheck") => new().responds(200, object()).responds(503, object()),
        ("GET", "/" | "/v1" | "/v1/anneal/openapi" | "/v1/healthcheck/alive") => {
            new().responds(200, object())
        }
        ("GET", "/v1/metrics") => {
            let text = Some(("text/plain", json!({"type": "string"})));
            Shape { answers: vec![("200".to_owned(), text)], ..new() }
        }
        ("GET", "/v1/drivers") => {
            let list = json!({"type": "array", "items": driver()});
            let filters = [("type", 30), ("detail", 30), ("fields", 77)];
            new().filters(&filters).responds(200, closed(json!({"drivers": list}), &["drivers"]))
        }
        ("GET", "/v1/drivers/{name}") => new().filters(&[("fields", 77)]).responds(200, driver()),
        ("GET", "/v1/drivers/{name}/properties") => {
            new().responds(200, json!({"type": "object", "additionalProperties": {"type": "string"}}))
        }
        ("GET", "/v1/deploy_templates") => new()
            .query(&page::ARGS)
            .query(&["detail", "fields"])
            .responds(200, types::page("deploy_templates", "DeployTemplate")),
        ("POST", "/v1/deploy_templates") => {
            new().body(reference("NewDeployTemplate")).responds(201, reference("DeployTemplate"))
        }
        ("GET", "/v1/deploy_templates/{ident}") => {
            new().query(&["fields"]).responds(200, reference("DeployTemplate"))
        }
        ("PATCH", "/v1/deploy_templates/{ident}") => new().patch().responds(200, reference("DeployTemplate")),
        ("DELETE", "/v1/deploy_templates/{ident}" | "/v1/inspection_rules") => new().empty(204),
        ("GET", "/v1/anneal/bundles") => {
            let list = json!({"type": "array", "items": bundle()});
            new().query(&["node"]).responds(200, closed(json!({"bundles": list}), &["bundles"]))
        }
        ("POST", "/v1/anneal/bundles") => {
            let mut added = bundle();
            added["properties"]["replaced"] = json!({"anyOf": [bundle(), {"type": "null"}]});
            let body = Some(("application/octet-stream", json!({}), true));
            Shape { body, ..new().query(&["scope", "digest"]).responds(201, added) }
        }
        ("GET", "/v1/anneal/bundles/{digest}") => new().responds(200, object()),
        ("DELETE", "/v1/anneal/bundles/{digest}") => new().query(&["scope"]).empty(204),
        ("GET", "/v1/anneal/bundles/{digest}/file" | "/v1/anneal/images/{name}") => {
            let file = Some(("application/octet-stream", json!({})));
            Shape { answers: vec![("200".to_owned(), file)], ..new() }
        }
        ("GET", "/v1/anneal/certificates") => {
            let list = json!({"type": "array", "items": certificate()});
            new().query(&["node"]).responds(200, closed(json!({"certificates": list}), &["certificates"]))
        }
        ("GET", "/v1/anneal/certificates/{id}") => new().responds(200, object()),
        ("GET", "/v1/anneal/events") => {
            new().query(&["after", "limit", "node", "type"]).responds(200, super::events::page())
        }
        ("GET", "/v1/anneal/webhooks") => new().responds(200, super::events::webhooks()),
        ("GET", "/v1/anneal/webhooks/{webhook}/dead_letters") => {
            new().responds(200, super::events::dead_letters())
        }
        ("POST", "/v1/anneal/webhooks/{webhook}/dead_letters/retry") => {
            let place = json!({"place": {"type": ["integer", "null"]}});
            let retried = closed(json!({"retried": {"type": "integer"}}), &["retried"]);
            new().optional_body(closed(place, &[])).responds(202, retried)
        }
        ("DELETE", "/v1/anneal/webhooks/{webhook}/dead_letters/{place}") => new().empty(204),
        ("GET", "/v1/anneal/certificate_key") => {
            let change = json!({"type": "object", "required": ["by_old", "by_new"]});
            let changes = json!({"type": "array", "items": change});
            let answer = json!({"key": text(), "changes": changes});
            new().responds(200, closed(answer, &["key", "changes"]))
        }
        ("GET", "/v1/anneal/certificate_log") => {
            let lines = json!({"type": "array", "maxItems": 1000, "items": text()});
            new().query(&["from"]).responds(200, closed(json!({"lines": lines}), &["lines"]))
        }
        _ => return None,
    })
}

/// A driver; what it offers for each interface only in detail.
fn driver() -> Value {
    let mut fields = Map::from_iter([
        ("name".to_owned(), text()),
        ("hosts".to_owned(), json!({"type": "array", "items": text()})),
        ("links".to_owned(), reference("Links")),
        ("properties".to_owned(), reference("Links")),
        ("type".to_owned(), text()),
    ]);
    for interface in INTERFACES {
        fields.insert(format!("default_{interface}_interface"), text_or_null());
        fields.insert(format!("enabled_{interface}_interfaces"), json!({"type": "array", "items": text()}));
    }
    closed(Value::Object(fields), &["links"])
}

fn bundle() -> Value {
    let fields = json!({
        "name": text(),
        "version": text(),
        "vendor": text_or_null(),
        "scope": text(),
        "digest": text(),
        "size": {"type": "integer"},
        "signed_by": text_or_null(),
        "created_at": text(),
    });
    closed(fields, &["name", "version", "vendor", "scope", "digest", "size", "signed_by", "created_at"])
}

fn certificate() -> Value {
    let fields = json!({
        "id": text(),
        "node_uuid": {"type": "string", "format": "uuid"},
        "number": {"type": "integer"},
        "finding": {},
        "command_id": text_or_null(),
        "issued_at": text(),
    });
    closed(fields, &["id", "node_uuid", "number", "finding", "command_id", "issued_at"])
}
