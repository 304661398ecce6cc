//! Places within an attribute: `driver_info/ipmi_address`, `properties.root_device.size`.

use crate::budget::DEPTH;
use crate::python::{equal, is_hidden, type_name};
use crate::signature::OperationError;
use serde_json::{Map, Value};

/// A place as its parts, the first of which is the attribute: with slashes if there are any, else with dots.
pub fn parts(path: &str) -> Vec<String> {
    let parts: Vec<_> = match path.contains('/') {
        true => path.trim_matches('/').split('/').collect(),
        false => path.split('.').collect(),
    };
    parts.into_iter().map(str::to_owned).collect()
}

/// The map that holds the last of `parts`, maps that are missing on the way being made. With `masked`, there is no way
/// through what is hidden.
fn holder<'a>(
    mut current: &'a mut Map<String, Value>,
    way: &[String],
    masked: bool,
) -> Result<&'a mut Map<String, Value>, OperationError> {
    for part in way {
        if masked && is_hidden(part) && current.contains_key(part) {
            return Err(OperationError(format!("{part:?} is hidden from rules")));
        }
        current = match current.entry(part.as_str()).or_insert_with(|| Value::Object(Map::new())) {
            Value::Object(fields) => fields,
            other => {
                return Err(OperationError(format!(
                    "{part:?} is a {}, which has nothing inside",
                    type_name(other)
                )));
            }
        };
    }
    Ok(current)
}

/// Set what stands at `parts` within `root`.
pub fn set(
    root: &mut Map<String, Value>,
    parts: &[String],
    value: Value,
    masked: bool,
) -> Result<(), OperationError> {
    shallow(parts, &value)?;
    let Some((last, way)) = parts.split_last() else { return Err(nowhere()) };
    holder(root, way, masked)?.insert(last.clone(), value);
    Ok(())
}

/// Add to the list at `parts` within `root`, which is made if there is none; with `unique`, unless it is in it. With
/// `lenient`, whatever Python takes for false is taken for no list.
pub fn extend(
    root: &mut Map<String, Value>,
    parts: &[String],
    value: Value,
    unique: bool,
    (masked, lenient): (bool, bool),
) -> Result<(), OperationError> {
    shallow(parts, &value)?;
    let Some((last, way)) = parts.split_last() else { return Err(nowhere()) };
    let place = holder(root, way, masked)?.entry(last.as_str()).or_insert_with(|| Value::Array(Vec::new()));
    if lenient && !crate::python::truth(place) {
        *place = Value::Array(Vec::new());
    }
    let Value::Array(items) = place else {
        return Err(OperationError(format!("what is there is a {} and no list", type_name(place))));
    };
    if !unique || !items.iter().any(|item| equal(item, &value)) {
        items.push(value);
    }
    Ok(())
}

/// Remove what stands at `parts` within `root`; whether there was any.
pub fn remove(root: &mut Map<String, Value>, parts: &[String]) -> bool {
    let Some((last, way)) = parts.split_last() else { return false };
    let mut current = root;
    for part in way {
        match current.get_mut(part) {
            Some(Value::Object(fields)) => current = fields,
            _ => return false,
        }
    }
    current.remove(last).is_some()
}

fn nowhere() -> OperationError {
    OperationError("the path is empty".to_owned())
}

/// Refuses what the store could not read back.
fn shallow(parts: &[String], value: &Value) -> Result<(), OperationError> {
    fn depth(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(depth).max().unwrap_or(0),
            Value::Object(fields) => fields.values().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }
    if parts.len() + depth(value) > DEPTH {
        return Err(OperationError(format!("the value would be nested deeper than {DEPTH}")));
    }
    Ok(())
}
