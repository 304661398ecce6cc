//! The tables of fields as JSON Schema (draft 2020-12, the one of OpenAPI 3.1).

use crate::args::BOOLEANS;
use crate::driver_queries::INTERFACES;
use crate::fields;
use crate::microversion::{MIN, Version};
use crate::resources::deploy_templates;
use crate::resources::field::{COMMON, Field, Type, Write};
use crate::resources::ports::Port;
use crate::resources::resource::ResourceHandler;
use crate::schema::Kind;
use model::{PowerTarget, ProvisionState};
use serde_json::{Map, Value, json};

/// A reference to one of [`all`].
pub fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Every named schema.
pub fn all() -> Value {
    json!({
        "Error": error(),
        "Links": links(),
        "Patch": patch(),
        "Node": node(),
        "NewNode": new_node(),
        "Port": port(),
        "NewPort": new_port(),
        "DeployTemplate": template(),
        "NewDeployTemplate": new_template(),
        "Step": step(),
        "Text": text(),
    })
}

/// What a name in braces stands for.
pub fn in_path(name: &str) -> Value {
    let about = match name {
        "ident" | "node" => "UUID or name",
        "event" | "uuid" => "UUID",
        "digest" => "SHA-256 of the file, in hexadecimal digits",
        _ => "name",
    };
    json!({"type": "string", "minLength": 1, "description": about})
}

/// What an argument of a query takes.
pub fn argument(name: &str) -> Value {
    match name {
        "limit" => json!({"type": "integer", "minimum": 1}),
        "marker" | "node_uuid" | "instance_uuid" | "chassis_uuid" => uuid(),
        "sort_dir" => json!({"type": "string", "enum": ["asc", "desc"]}),
        "detail" | "associated" | "maintenance" | "retired" | "sharded" | "include_children"
        | "persistent" | "reset_interfaces" => json!({"type": "string", "enum": BOOLEANS}),
        "provision_state" => json!({"type": "string", "enum": states()}),
        "fault" => json!({"type": "string", "enum": crate::nodes::filter::FAULTS}),
        "min_priority" => json!({"type": "number"}),
        "fields" | "addresses" | "shard" | "conductor_groups" => {
            json!({"type": "string", "description": "separated by commas"})
        }
        _ => text(),
    }
}

fn states() -> Value {
    ProvisionState::ALL.iter().map(|state| state.as_str()).collect()
}

/// A text.
pub fn text() -> Value {
    json!({"type": "string"})
}

fn uuid() -> Value {
    json!({"type": "string", "format": "uuid"})
}

pub fn text_or_null() -> Value {
    json!({"type": ["string", "null"]})
}

/// A schema of an object that has no other members than these.
pub fn closed(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// A list below the name of its resource, with the way to the next page.
pub fn page(name: &str, item: &str) -> Value {
    let items = json!({"type": "array", "items": reference(item)});
    closed(json!({name: items, "next": {"type": "string", "format": "uri"}}), &[name])
}

fn links() -> Value {
    let link = closed(
        json!({"href": {"type": "string"}, "rel": {"type": "string"}, "type": {"type": "string"}}),
        &["href", "rel"],
    );
    json!({"type": "array", "items": link})
}

/// Ironic encodes twice: the text is JSON itself.
fn error() -> Value {
    let fault = closed(
        json!({
            "faultcode": {"type": "string", "enum": ["Client", "Server"]},
            "faultstring": text(),
            "debuginfo": text_or_null(),
        }),
        &["faultcode", "faultstring", "debuginfo"],
    );
    let plain = closed(
        json!({"code": {"type": "integer"}, "title": text(), "description": text()}),
        &["code", "title", "description"],
    );
    let message = json!({
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"anyOf": [fault, plain]},
    });
    closed(json!({"error_message": message}), &["error_message"])
}

fn patch() -> Value {
    let operation = closed(
        json!({
            "op": {"type": "string", "enum": ["add", "replace", "remove"]},
            "path": {"type": "string", "pattern": "^(/[^/]+)+$"},
            "value": {},
        }),
        &["op", "path"],
    );
    json!({"type": "array", "items": operation})
}

/// What may be written into a field.
fn written(kind: Kind) -> Value {
    match kind {
        Kind::Text(most) => json!({"type": ["string", "null"], "maxLength": most}),
        Kind::NonEmpty(most) => json!({"type": ["string", "null"], "minLength": 1, "maxLength": most}),
        Kind::Boolean => json!({"type": ["boolean", "string", "null"]}),
        Kind::Uuid => json!({"type": ["string", "null"], "format": "uuid"}),
        Kind::Object => json!({"type": ["object", "null"]}),
        Kind::Driver => json!({"type": "string", "minLength": 1, "maxLength": 255}),
    }
}

/// Schema of a field that clients write, as it is read.
fn read(kind: Kind) -> Value {
    match kind {
        Kind::Text(_) | Kind::NonEmpty(_) => text_or_null(),
        Kind::Boolean => json!({"type": ["boolean", "null"]}),
        Kind::Uuid => json!({"type": ["string", "null"], "format": "uuid"}),
        Kind::Object => json!({"type": ["object", "null"]}),
        Kind::Driver => text(),
    }
}

/// Schema of a read-only field, by its name.
fn read_only(name: &str) -> Value {
    match name {
        "uuid" => uuid(),
        "links" => reference("Links"),
        "traits" => json!({"type": "array", "items": text()}),
        "console_enabled" => json!({"type": "boolean"}),
        "secure_boot" => json!({"type": ["boolean", "null"]}),
        "provision_state" => {
            let mut known = states();
            if let Some(known) = known.as_array_mut() {
                known.push(Value::Null);
            }
            json!({"enum": known})
        }
        name if name.ends_with("_at") => json!({"type": ["string", "null"], "format": "date-time"}),
        name if name.ends_with("_step") || name.ends_with("_info") || name.ends_with("raid_config") => {
            json!({"type": ["object", "null"]})
        }
        _ => text_or_null(),
    }
}

fn since(mut schema: Value, since: u16) -> Value {
    if since > MIN {
        schema["x-since"] = Version(since).to_string().into();
    }
    schema
}

/// One field of a node, as it is read.
pub fn node_field(name: &str) -> Value {
    fields::find(name).map_or_else(|| read_only(name), shown)
}

/// A field as it is read.
fn shown(field: &Field) -> Value {
    let schema = match field.write {
        Write::Always(kind) | Write::Patch(kind) | Write::Required(kind) => read(plain(kind)),
        Write::Never | Write::Create(_) => read_only(field.name),
    };
    since(schema, field.since)
}

fn all_shown<'a>(fields: impl Iterator<Item = &'a Field>, links: &[&str]) -> Value {
    let mut properties: Map<_, _> = fields.map(|field| (field.name.to_owned(), shown(field))).collect();
    properties.extend(links.iter().map(|name| ((*name).to_owned(), reference("Links"))));
    closed(Value::Object(properties), &["links"])
}

/// The fields of a new one.
fn new<'a>(fields: impl Iterator<Item = &'a Field>) -> Map<String, Value> {
    let field =
        |field: &Field| Some((field.name.to_owned(), since(written(plain(field.creatable()?)), field.since)));
    fields.filter_map(field).collect()
}

/// The type of nodes' fields that is nearest.
fn plain(kind: Type) -> Kind {
    match kind {
        Type::Plain(kind) => kind,
        Type::Node => Kind::Uuid,
        Type::Text | Type::Address | Type::Integer | Type::Special(_) => Kind::Text(255),
    }
}

fn node() -> Value {
    all_shown(fields::NODE.iter().chain(fields::OWN), &["links", "ports", "states", "portgroups", "volume"])
}

fn new_node() -> Value {
    closed(Value::Object(new(fields::NODE.iter())), &["driver"])
}

fn port() -> Value {
    all_shown(Port::SPEC.fields.iter().chain(COMMON), &["links"])
}

fn new_port() -> Value {
    let mut properties = new(Port::SPEC.fields.iter().chain(COMMON));
    properties.insert("node_ident".into(), since(text(), 94));
    let mac = json!({"type": "string", "pattern": "^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$"});
    properties.insert("address".into(), mac);
    closed(Value::Object(properties), &["address"])
}

/// A step that comes with a verb.
fn step() -> Value {
    let interface = json!({"type": "string", "enum": INTERFACES});
    let properties = json!({
        "interface": interface,
        "step": {"type": "string", "minLength": 1},
        "args": {"type": "object"},
        "priority": {"type": ["integer", "string"]},
        "order": {"type": "integer"},
        "execute_on_child_nodes": {"type": "boolean"},
        "limit_child_node_execution": {"type": "array"},
    });
    closed(properties, &["interface", "step"])
}

fn template() -> Value {
    let properties: Map<_, _> = deploy_templates::field_names()
        .into_iter()
        .map(|name| {
            let schema = match name {
                "steps" => json!({"type": "array", "items": reference("Step")}),
                "extra" => json!({"type": "object"}),
                name => read_only(name),
            };
            (name.to_owned(), schema)
        })
        .collect();
    closed(Value::Object(properties), &["links"])
}

fn new_template() -> Value {
    let properties = json!({
        "uuid": {"type": ["string", "null"], "format": "uuid"},
        "name": {"type": "string", "pattern": "^CUSTOM_[A-Z0-9_]+$", "maxLength": 255},
        "steps": {"type": "array", "minItems": 1, "items": reference("Step")},
        "description": {"type": ["string", "null"], "maxLength": 255},
        "extra": {"type": ["object", "null"]},
    });
    closed(properties, &["name", "steps"])
}

/// The body of `PUT …/states/power`.
pub fn power() -> Value {
    let targets: Vec<_> = PowerTarget::ALL.iter().map(|target| target.as_str()).collect();
    let timeout = json!({"type": ["integer", "string", "null"], "minimum": 1, "x-since": "1.27"});
    closed(json!({"target": {"type": "string", "enum": targets}, "timeout": timeout}), &["target"])
}

/// An object of any fields.
pub fn object() -> Value {
    json!({"type": "object"})
}

/// A list of texts.
pub fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}
