//! Types of written fields: what a JSON schema says of them in Ironic, with its words.

use crate::args::as_uuid;
use crate::body;
use crate::error::ApiError;
use serde_json::{Map, Value};

/// Type of a field that clients write. All may also be null, except the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text of at most so many characters.
    Text(usize),
    /// Text of 1 to so many characters.
    NonEmpty(usize),
    /// Boolean, also as a word.
    Boolean,
    /// UUID.
    Uuid,
    /// JSON object.
    Object,
    /// Name of a driver; never null.
    Driver,
}

/// The value as it is stored, or 400. `what` is `node`, `port` or `patch`.
pub fn check(what: &str, name: &str, kind: Kind, value: &Value) -> Result<Value, ApiError> {
    let wrong = |types: &str| Err(wrong_field(what, name, value, types));
    let too = |text: &str, how: &str| {
        let quoted = body::python(&Value::String(text.to_owned()));
        Err(ApiError::invalid(format!("Schema error for {what}: {quoted} is too {how} (field \"{name}\")")))
    };
    match (kind, value) {
        (Kind::Driver, Value::String(text)) if text.is_empty() => too(text, "short"),
        (Kind::Driver, Value::String(text)) if text.len() > 255 => too(text, "long"),
        (Kind::Driver, Value::String(_)) => Ok(value.clone()),
        (Kind::Driver, _) => wrong("'string'"),
        (_, Value::Null) => Ok(Value::Null),
        (Kind::NonEmpty(_), Value::String(text)) if text.is_empty() => too(text, "short"),
        (Kind::Text(most) | Kind::NonEmpty(most), Value::String(text)) if text.chars().count() > most => {
            too(text, "long")
        }
        (Kind::Text(_) | Kind::NonEmpty(_), Value::String(_)) => Ok(value.clone()),
        (Kind::Text(_) | Kind::NonEmpty(_), _) => wrong("'string', 'null'"),
        (Kind::Boolean, Value::Bool(_) | Value::String(_)) => {
            Ok(body::boolean(name, value)?.map_or(Value::Null, Value::Bool))
        }
        (Kind::Boolean, _) => wrong("'string', 'boolean', 'null'"),
        (Kind::Uuid, Value::String(text)) => Ok(Value::String(as_uuid(name, text)?.to_string())),
        (Kind::Uuid, _) => wrong("'string', 'null'"),
        (Kind::Object, Value::Object(_)) => Ok(value.clone()),
        (Kind::Object, _) => wrong("'object', 'null'"),
    }
}

/// The body of a new resource as an object.
pub fn object(what: &str, value: Value) -> Result<Map<String, Value>, ApiError> {
    match value {
        Value::Object(fields) => Ok(fields),
        other => Err(wrong_type(what, &other, "'object'")),
    }
}

/// 400 for a body that is of none of these types.
pub fn wrong_type(what: &str, value: &Value, types: &str) -> ApiError {
    ApiError::invalid(format!("Schema error for {what}: {} is not of type {types}", body::python(value)))
}

/// 400 for a field that is of none of these types.
pub fn wrong_field(what: &str, name: &str, value: &Value, types: &str) -> ApiError {
    let value = body::python(value);
    ApiError::invalid(format!("Schema error for {what}: {value} is not of type {types} (field \"{name}\")"))
}

/// 400 for fields that a resource does not have.
pub fn no_others(what: &str, unknown: &[&str]) -> Result<(), ApiError> {
    let quoted: Vec<_> = unknown.iter().map(|name| format!("'{name}'")).collect();
    match quoted.as_slice() {
        [] => Ok(()),
        [one] => Err(ApiError::invalid(format!(
            "Schema error for {what}: Additional properties are not allowed ({one} was unexpected)"
        ))),
        many => Err(ApiError::invalid(format!(
            "Schema error for {what}: Additional properties are not allowed ({} were unexpected)",
            many.join(", ")
        ))),
    }
}
