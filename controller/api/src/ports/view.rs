//! A port as clients see it, and the table of its fields.

use crate::call::Call;
use crate::error::ApiError;
use crate::fields::Kind;
use crate::format::{at, iso, text};
use crate::links::Links;
use crate::microversion::Version;
use model::Port;
use serde_json::{Map, Value, json};

/// A field of a port: name, minor version since which it exists, and its type if clients write it.
pub struct Field {
    /// Name on the wire.
    pub name: &'static str,
    /// Minor version.
    pub since: u16,
    /// Type; `None` for a field that only the controller writes.
    pub kind: Option<Kind>,
}

const fn field(name: &'static str, since: u16, kind: Option<Kind>) -> Field {
    Field { name, since, kind }
}

/// Fields in the order in which messages list them. `node_uuid` and `address` are checked apart.
pub const FIELDS: [Field; 18] = [
    field("address", 1, Some(Kind::Text(64))),
    field("extra", 1, Some(Kind::Object)),
    field("is_smartnic", 53, Some(Kind::Boolean)),
    field("local_link_connection", 19, Some(Kind::Object)),
    field("node_uuid", 1, Some(Kind::Uuid)),
    field("physical_network", 34, Some(Kind::NonEmpty(64))),
    field("portgroup_uuid", 24, Some(Kind::Uuid)),
    field("pxe_enabled", 19, Some(Kind::Boolean)),
    field("name", 88, Some(Kind::Text(255))),
    field("description", 97, Some(Kind::Text(255))),
    field("vendor", 100, Some(Kind::Text(32))),
    field("category", 101, Some(Kind::Text(80))),
    field("available_for_dynamic_portgroup", 111, Some(Kind::Boolean)),
    field("uuid", 1, None),
    field("created_at", 1, None),
    field("updated_at", 1, None),
    field("internal_info", 18, None),
    field("links", 1, None),
];

/// The field of this name.
pub fn find(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

/// The fields the client wants, checked.
pub fn wanted(call: &Call) -> Result<Option<Vec<String>>, ApiError> {
    let Some(wanted) = call.args.list("fields") else { return Ok(None) };
    call.version.needs(8)?;
    let mut unknown = Vec::new();
    for name in &wanted {
        match find(name) {
            Some(field) => call.version.needs(field.since)?,
            None => unknown.push(name.as_str()),
        }
    }
    if !unknown.is_empty() {
        return Err(ApiError::invalid(format!("Field(s) \"{}\" are not valid", unknown.join(", "))));
    }
    Ok(Some(wanted))
}

/// The value of one field.
pub fn value(port: &Port, name: &str) -> Value {
    let other =
        |default: Value| port.other.get(name).filter(|value| !value.is_null()).cloned().unwrap_or(default);
    match name {
        "uuid" => port.uuid.to_string().into(),
        "node_uuid" => port.node_uuid.to_string().into(),
        "address" => port.address.clone().into(),
        "name" => text(port.name.as_deref()),
        "pxe_enabled" => port.pxe_enabled.into(),
        "extra" => Value::Object(port.extra.clone()),
        "local_link_connection" => Value::Object(port.local_link_connection.clone()),
        "created_at" => iso(port.created_at).into(),
        "updated_at" => at(port.updated_at),
        "internal_info" => json!({}),
        "is_smartnic" => other(Value::Bool(false)),
        "available_for_dynamic_portgroup" => other(Value::Bool(true)),
        _ => other(Value::Null),
    }
}

/// Set a field to a value that the schema has let pass.
pub fn set(port: &mut Port, name: &str, value: Value) {
    let object = |value: Value| match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    match name {
        "name" => port.name = value.as_str().filter(|name| !name.is_empty()).map(str::to_owned),
        "pxe_enabled" => port.pxe_enabled = value.as_bool().unwrap_or(true),
        "extra" => port.extra = object(value),
        "local_link_connection" => port.local_link_connection = object(value),
        name => {
            if value.is_null() {
                port.other.remove(name);
            } else {
                port.other.insert(name.to_owned(), value);
            }
        }
    }
}

/// The port in the wanted fields, or in all.
pub fn view(port: &Port, links: &Links, version: Version, wanted: Option<&[String]>) -> Map<String, Value> {
    let mut view: Map<_, _> = FIELDS
        .iter()
        .filter(|field| field.name != "links" && version.has(field.since))
        .filter(|field| wanted.is_none_or(|names| names.iter().any(|name| name == field.name)))
        .map(|field| (field.name.to_owned(), value(port, field.name)))
        .collect();
    view.insert("links".into(), links.pair(&format!("ports/{}", port.uuid)));
    view
}
