//! Fields of nodes and resources: the version that introduced them, their type, who writes them, and their default.

use crate::body::python;
use crate::error::ApiError;
use crate::schema::{self, Kind};
use mac::Mac;
use model::Resource;
use serde_json::{Value, json};

/// Reads a value as clients write it: what is read (`portgroup`, `patch`), the field, the value. The value as it is
/// kept, or 400.
pub type Reader = fn(&str, &str, &Value) -> Result<Value, ApiError>;

/// Type of a field.
#[derive(Debug, Clone, Copy)]
pub enum Type {
    /// One that nodes have too. Null is taken.
    Plain(Kind),
    /// Text, never null.
    Text,
    /// A MAC address, or null.
    Address,
    /// A whole number, never null.
    Integer,
    /// The UUID of a node, never null.
    Node,
    /// What only one resource has.
    Special(Reader),
}

/// Which side writes a field.
#[derive(Debug, Clone, Copy)]
pub enum Write {
    /// The controller.
    Never,
    /// Clients, when they make it.
    Create(Type),
    /// Clients, always.
    Always(Type),
    /// Clients, but not when they make it.
    Patch(Type),
    /// Clients, and they must.
    Required(Type),
}

/// Default of a field.
#[derive(Debug, Clone, Copy)]
pub enum Empty {
    /// Null.
    Null,
    /// `{}`.
    Object,
    /// `[]`.
    List,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(i64),
    /// A text.
    Text(&'static str),
}

impl Empty {
    /// As JSON.
    pub fn value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Object => json!({}),
            Self::List => json!([]),
            Self::Bool(value) => value.into(),
            Self::Number(value) => value.into(),
            Self::Text(value) => value.into(),
        }
    }
}

/// A field.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name on the wire.
    pub name: &'static str,
    /// The minor version since which it exists.
    pub since: u16,
    /// Which side writes it.
    pub write: Write,
    /// Its default.
    pub empty: Empty,
    /// Whether lists can be sorted by it.
    pub sortable: bool,
}

/// A field that only the controller writes.
pub const fn read_only(name: &'static str, since: u16) -> Field {
    Field { name, since, write: Write::Never, empty: Empty::Null, sortable: true }
}

/// A field that clients write.
pub const fn written(name: &'static str, since: u16, write: Write) -> Field {
    Field { name, since, write, empty: Empty::Null, sortable: true }
}

/// An object that clients write; lists cannot be sorted by it.
pub const fn object(name: &'static str, since: u16) -> Field {
    let write = Write::Always(Type::Plain(Kind::Object));
    Field { name, since, write, empty: Empty::Object, sortable: false }
}

impl Field {
    /// The same field with a default.
    pub const fn or(self, empty: Empty) -> Self {
        Self { empty, ..self }
    }

    /// The same field, that lists cannot be sorted by.
    pub const fn unsortable(self) -> Self {
        Self { sortable: false, ..self }
    }

    /// Its type in a new resource.
    pub fn creatable(&self) -> Option<Type> {
        match self.write {
            Write::Create(kind) | Write::Always(kind) | Write::Required(kind) => Some(kind),
            Write::Never | Write::Patch(_) => None,
        }
    }

    /// Its type in a PATCH.
    pub fn patchable(&self) -> Option<Type> {
        match self.write {
            Write::Always(kind) | Write::Patch(kind) | Write::Required(kind) => Some(kind),
            Write::Never | Write::Create(_) => None,
        }
    }

    /// Whether there is none without it.
    pub fn is_required(&self) -> bool {
        matches!(self.write, Write::Required(_))
    }
}

/// What every resource has.
pub const COMMON: &[Field] = &[
    written("uuid", 1, Write::Create(Type::Plain(Kind::Uuid))),
    read_only("created_at", 1),
    read_only("updated_at", 1),
];

/// A value as it is kept, or 400 in the words of a schema.
pub fn check(what: &str, name: &str, kind: Type, value: &Value) -> Result<Value, ApiError> {
    let wrong = |kind: &str| Err(schema::wrong_field(what, name, value, kind));
    match (kind, value) {
        (Type::Plain(kind), value) => schema::check(what, name, kind, value),
        (Type::Special(read), value) => read(what, name, value),
        (Type::Text, Value::String(text)) if text.chars().count() <= 255 => Ok(value.clone()),
        (Type::Text, Value::String(_)) => {
            let text = format!("Schema error for {what}: {} is too long (field \"{name}\")", python(value));
            Err(ApiError::invalid(text))
        }
        (Type::Node, Value::String(_)) => schema::check(what, name, Kind::Uuid, value),
        (Type::Text | Type::Node, _) => wrong("'string'"),
        (Type::Integer, Value::Number(number)) if number.as_i64().is_some() => Ok(value.clone()),
        (Type::Integer, _) => wrong("'integer'"),
        (Type::Address, Value::Null) => Ok(Value::Null),
        (Type::Address, value) => {
            let shown =
                || value.as_str().map_or_else(|| python(value), |text| text.chars().take(64).collect());
            let address = value.as_str().and_then(|text| text.trim().parse::<Mac>().ok());
            let bad = || ApiError::invalid(format!("Expected valid MAC address for {name}: {}", shown()));
            Ok(address.ok_or_else(bad)?.to_string().into())
        }
    }
}

/// Set a field to a value that [`check`] has let pass.
pub fn set(resource: &mut Resource, name: &str, value: Value) {
    let uuid = |value: &Value| value.as_str().and_then(|text| uuid::Uuid::parse_str(text).ok());
    match name {
        "uuid" => resource.uuid = uuid(&value).unwrap_or(resource.uuid),
        "name" => resource.name = value.as_str().filter(|name| !name.is_empty()).map(str::to_owned),
        "node_uuid" => resource.node = uuid(&value),
        name if value.is_null() => {
            resource.fields.remove(name);
        }
        name => {
            resource.fields.insert(name.to_owned(), value);
        }
    }
}

/// A list of texts, or null.
pub fn texts(what: &str, name: &str, value: &Value) -> Result<Value, ApiError> {
    each(what, name, value, |item| match item {
        Value::String(_) => Ok(()),
        other => Err(schema::wrong_field(what, name, other, "'string'")),
    })
}

/// A list of names of traits, or null.
pub fn trait_names(what: &str, name: &str, value: &Value) -> Result<Value, ApiError> {
    each(what, name, value, |item| crate::traits::name(what, item).map(drop))
}

fn each(
    what: &str,
    name: &str,
    value: &Value,
    check: impl Fn(&Value) -> Result<(), ApiError>,
) -> Result<Value, ApiError> {
    match value {
        Value::Null => Ok(Value::Null),
        Value::Array(items) => items.iter().try_for_each(check).map(|()| value.clone()),
        other => Err(schema::wrong_field(what, name, other, "'array', 'null'")),
    }
}
