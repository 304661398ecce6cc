//! The OpenAPI 3.1 document, made from the rows of the router ([`crate::endpoint`]) and the tables of fields and
//! filters that the handlers themselves read. A row without an entry in the tables is described from the row itself.
//!
//! ```text
//!   endpoints() ─┐
//!   shapes/ ─────┼─▶ document() ─▶ GET /v1/anneal/openapi, docs/openapi.json, the fuzzer, schemathesis
//!   types.rs ────┘      types.rs: fields.rs, ports/view.rs … as JSON Schema
//! ```

mod shape;
mod shapes;
mod types;

use crate::call::{Call, json as answer};
use crate::endpoint::{Endpoint, OPEN, Serves, rows};
use crate::error::Reply;
use crate::microversion::{HEADER, MAX, MAX_HEADER, MIN, MIN_HEADER, Version};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// Endpoint of the document.
pub fn endpoints() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/anneal/openapi" 1 OPEN, "this API as an OpenAPI 3.1 document" => show;
    ];
    rows.into_iter().map(Endpoint::own).collect()
}

/// `GET /v1/anneal/openapi`.
pub async fn show(call: Call) -> Reply {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(document);
    call.args.only(&[])?;
    Ok(answer(200, &DOCUMENT))
}

/// The document.
pub fn document() -> Value {
    let endpoints = crate::endpoints();
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in &endpoints {
        let shape = shapes::of(endpoint, &endpoints);
        let item =
            paths.entry(endpoint.path).or_insert_with(|| json!({"parameters": in_path(endpoint.path)}));
        item[endpoint.method.as_str().to_lowercase()] = operation(endpoint, shape);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Anneal",
            "description": "Ironic's REST API as Anneal serves it. Paths, fields and arguments that came with a \
                            microversion say so as x-since; what is newer than the one that is asked for answers as \
                            Ironic answers it.",
            "version": Version(MAX).to_string(),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"basic": []}],
        "paths": paths,
        "components": {
            "schemas": types::all(),
            "parameters": {"Microversion": microversion()},
            "responses": {
                "Refused": error("The request was refused, and changed nothing."),
                "Failed": error("500: the database failed, see the log. 503: the node's BMC or agent did not answer."),
            },
            "headers": headers(),
            "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
        },
    })
}

fn operation(endpoint: &Endpoint, shape: shape::Shape) -> Value {
    let mut parameters = vec![json!({"$ref": "#/components/parameters/Microversion"})];
    parameters.extend(shape.query.iter().map(|(name, since)| {
        let mut argument = json!({"name": name, "in": "query", "schema": types::argument(name)});
        if *since > MIN {
            argument["x-since"] = Version(*since).to_string().into();
        }
        argument
    }));
    let mut responses: Map<String, Value> =
        shape.answers.into_iter().map(|(status, schema)| (status, success(schema))).collect();
    responses.insert("4XX".into(), json!({"$ref": "#/components/responses/Refused"}));
    responses.insert("5XX".into(), json!({"$ref": "#/components/responses/Failed"}));
    let mut operation = json!({
        "operationId": operation_id(endpoint),
        "summary": endpoint.about,
        "tags": [tag(endpoint.path)],
        "parameters": parameters,
        "responses": responses,
        "x-since": Version(endpoint.since).to_string(),
        "x-policy": endpoint.policy,
    });
    match endpoint.serves {
        Serves::Fully => {}
        Serves::Noop(why) => operation["x-noop"] = why.into(),
        Serves::Kept(why) => operation["x-kept"] = why.into(),
        Serves::Own => operation["x-own"] = true.into(),
    }
    if endpoint.policy == OPEN {
        operation["security"] = json!([]);
    }
    if let Some((media, schema, required)) = shape.body {
        operation["requestBody"] = json!({"required": required, "content": {media: {"schema": schema}}});
    }
    operation
}

/// A successful answer; `None`: without a body.
fn success(body: Option<(&'static str, Value)>) -> Value {
    let mut response = json!({"description": "Done, or begun.", "headers": common_headers()});
    if let Some((media, schema)) = body {
        response["content"] = json!({media: {"schema": schema}});
    }
    response
}

fn error(why: &str) -> Value {
    json!({
        "description": why,
        "headers": common_headers(),
        "content": {"application/json": {"schema": types::reference("Error")}},
    })
}

/// Headers of every answer.
const COMMON_HEADERS: [&str; 3] = ["openstack-request-id", MIN_HEADER, MAX_HEADER];

fn common_headers() -> Value {
    let reference = |name: &str| (name.to_owned(), json!({"$ref": format!("#/components/headers/{name}")}));
    Value::Object(COMMON_HEADERS.map(reference).into_iter().collect())
}

fn headers() -> Value {
    let version = || json!({"required": true, "schema": {"type": "string", "pattern": "^1\\.[0-9]+$"}});
    json!({
        "openstack-request-id": {
            "required": true,
            "description": "Names the request in the log.",
            "schema": {"type": "string", "pattern": "^req-[0-9a-f-]{36}$"},
        },
        MIN_HEADER: version(),
        MAX_HEADER: version(),
    })
}

fn microversion() -> Value {
    json!({
        "name": HEADER,
        "in": "header",
        "description": format!("{} to {}, or latest; {} when it is not sent.", Version(MIN), Version(MAX), Version(MIN)),
        "schema": {"type": "string", "pattern": "^(1\\.[0-9]{1,3}|latest)$", "examples": [Version(MAX).to_string()]},
    })
}

/// The names in braces of a path.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}

fn in_path(path: &str) -> Value {
    names(path)
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": types::in_path(name)}))
        .collect()
}

/// `GET /v1/nodes/{ident}` → `get_nodes_ident`.
fn operation_id(endpoint: &Endpoint) -> String {
    let words =
        endpoint.path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut id = endpoint.method.as_str().to_lowercase();
    for word in words {
        id.push('_');
        id.push_str(word);
    }
    id
}

/// The resource that a path is of.
fn tag(path: &str) -> &str {
    let mut segments = path.split('/').filter(|segment| !matches!(*segment, "" | "v1" | "anneal"));
    segments.next().unwrap_or("root")
}
