//! `docs/openapi.json` is the document that the API makes of itself and serves.
//! `ANNEAL_WRITE_DOCS=1 cargo test -p api --test main openapi` writes it anew.
//! A validator that others wrote judges it in the contract tests (scenario `schemathesis`).

use crate::common::Api;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const FILE: &str = "../../docs/openapi.json";

#[test]
fn the_checked_in_document_is_the_one_that_is_made() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let made = format!("{:#}\n", api::openapi::document());
    if std::env::var_os("ANNEAL_WRITE_DOCS").is_some() {
        std::fs::write(&path, &made).expect("docs/openapi.json");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/openapi.json is stale: ANNEAL_WRITE_DOCS=1 cargo test -p api --test main openapi"
    );
}

#[tokio::test]
async fn the_document_is_served_without_login_in_every_version() {
    let api = Api::new();
    for minor in [1, 115] {
        let answer = api.at(minor, "GET", "/v1/anneal/openapi", None).await.is(200);
        assert_eq!(answer.body, api::openapi::document());
    }
    assert_eq!(api.get("/v1/anneal/openapi?x=1").await.status, 400);
}

#[test]
fn the_document_has_every_endpoint_once_and_no_loose_reference() {
    let document = api::openapi::document();
    let mut operations = BTreeSet::new();
    for endpoint in api::endpoints() {
        let operation = &document["paths"][endpoint.path][endpoint.method.as_str().to_lowercase()];
        let id = operation["operationId"].as_str().unwrap_or_else(|| panic!("{} is missing", endpoint.path));
        assert!(operations.insert(id.to_owned()), "two operations are named {id}");
        assert_eq!(operation["x-policy"], endpoint.policy);
        assert!(operation["responses"]["4XX"].is_object(), "{id} cannot be refused");
    }
    let methods = |item: &Value| item.as_object().map_or(0, |item| item.len() - 1);
    let documented: usize = document["paths"].as_object().unwrap().values().map(methods).sum();
    assert_eq!(documented, operations.len(), "an operation that no endpoint has");
    resolve(&document, &document);
}

fn resolve(document: &Value, at: &Value) {
    match at {
        Value::Object(fields) => {
            if let Some(Value::String(target)) = fields.get("$ref") {
                let pointer = target.trim_start_matches('#');
                assert!(document.pointer(pointer).is_some(), "{target} is nowhere");
            }
            fields.values().for_each(|value| resolve(document, value));
        }
        Value::Array(items) => items.iter().for_each(|item| resolve(document, item)),
        _ => {}
    }
}
