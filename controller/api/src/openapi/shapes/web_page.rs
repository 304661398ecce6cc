//! Requests and answers of what the web page asks for.

use crate::nodes::{filter, list};
use crate::openapi::shape::Shape;
use crate::openapi::types::{self, closed, object, text, text_or_null};
use crate::page;
use serde_json::{Value, json};

/// What is known of a method and a path.
pub fn known((method, path): (&str, &str)) -> Option<Shape> {
    let new = Shape::new;
    Some(match (method, path) {
        ("GET", "/v1/anneal/fleet" | "/v1/anneal/nodes/{ident}/progress") => new().responds(200, object()),
        ("GET", "/v1/anneal/certificates/{id}/verification") => new().responds(200, verification()),
        ("GET", "/v1/anneal/nodes") => new()
            .filters(&filter::FILTERS)
            .query(&page::ARGS)
            .query(&[list::SEARCH])
            .filters(&[("fields", 8)])
            .responds(200, types::page("nodes", "Node")),
        ("GET", "/v1/anneal/nodes/{ident}/rights") => new().responds(200, object()),
        ("GET", "/v1/anneal/rights") => {
            let mut fields = caller();
            fields["policies"] = json!({"type": "array", "items": text()});
            new().responds(200, closed(fields, &["user", "role", "project", "policies"]))
        }
        ("GET", "/v1/anneal/session") => {
            let fields = json!({
                "login": {"type": "string", "enum": ["password", "link", "none"]},
                "authenticated": {"type": "boolean"},
                "user": text_or_null(),
                "expires_at": instant(),
            });
            new().responds(200, closed(fields, &["login", "authenticated", "user", "expires_at"]))
        }
        ("POST", "/v1/anneal/session") => {
            let given = json!({"user": text_or_null(), "password": text_or_null(), "link": text_or_null()});
            let mut fields = caller();
            fields["csrf"] = text();
            fields["expires_at"] = text();
            let answer = closed(fields, &["user", "role", "project", "csrf", "expires_at"]);
            new().body(closed(given, &[])).responds(201, answer)
        }
        ("DELETE", "/v1/anneal/session") => new().empty(204),
        ("POST", "/v1/anneal/session/links") => {
            let fields = json!({"url": {"type": "string", "format": "uri"}, "expires_at": instant()});
            new().optional_body(closed(json!({}), &[])).responds(201, closed(fields, &["url", "expires_at"]))
        }
        _ => return None,
    })
}

fn caller() -> Value {
    json!({"user": text_or_null(), "role": text_or_null(), "project": text_or_null()})
}

fn instant() -> Value {
    json!({"type": ["string", "null"], "format": "date-time"})
}

fn verification() -> Value {
    let object = || json!({"type": ["object", "null"]});
    let fields = json!({
        "id": text(),
        "good": {"type": "boolean"},
        "refused": text_or_null(),
        "text": text(),
        "certificate": object(),
        "evidence": object(),
    });
    closed(fields, &["id", "good", "refused", "text", "certificate", "evidence"])
}
