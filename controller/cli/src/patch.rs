//! JSON patches (RFC 6902).

use crate::failure::Failure;
use serde_json::{Value, json};

/// RFC 6901: `~` and `/` of a key are written `~0` and `~1`.
pub fn pointer(field: &str, key: &str) -> String {
    format!("/{field}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Sets what is at a pointer.
pub fn add(path: &str, value: Value) -> Value {
    json!({"op": "add", "path": path, "value": value})
}

/// Removes what is at a pointer.
pub fn remove(path: &str) -> Value {
    json!({"op": "remove", "path": path})
}

/// Sets a field; of an object the given keys, the others stay.
pub fn sets(field: &str, value: Value) -> Vec<Value> {
    match value {
        Value::Object(keys) => {
            keys.into_iter().map(|(key, value)| add(&pointer(field, &key), value)).collect()
        }
        value => vec![add(&format!("/{field}"), value)],
    }
}

/// A patch that changes nothing was not meant.
///
/// # Errors
/// It is empty.
pub fn not_empty(changes: &[Value]) -> Result<(), Failure> {
    if changes.is_empty() {
        return Err(Failure::Usage("nothing to change: name at least one field (see --help)".to_owned()));
    }
    Ok(())
}
