//! JSON patches (RFC 6902) as Ironic takes them: `add`, `replace` and `remove`, applied to the fields that a
//! resource lets clients write.

use crate::body;
use crate::error::ApiError;
use crate::microversion::Version;
use crate::resources::field::Field;
use crate::schema;
use model::mask::{is_secret, masked_value};
use serde_json::{Map, Value};

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    kind: OpKind,
    /// Decoded parts of the pointer, at least one.
    path: Vec<String>,
    /// As the client sent it, for messages, without its secrets.
    shown: Value,
}

#[derive(Debug, Clone, PartialEq)]
enum OpKind {
    Add(Value),
    Replace(Value),
    Remove,
}

impl Op {
    /// The field at the root of the pointer.
    pub fn field(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }

    /// The whole pointer.
    pub fn pointer(&self) -> String {
        self.path.iter().map(|part| format!("/{part}")).collect()
    }

    /// Whether it sets this key of a field that is an object, alone or with the whole field.
    pub fn sets(&self, field: &str, key: &str) -> bool {
        let (OpKind::Add(value) | OpKind::Replace(value)) = &self.kind else { return false };
        match self.path.as_slice() {
            [root] => root == field && value.get(key).is_some(),
            [root, inner] => root == field && inner == key,
            _ => false,
        }
    }

    /// Whether it takes its target away.
    pub fn removes(&self) -> bool {
        self.kind == OpKind::Remove
    }

    /// The value it sets, if it sets the whole field.
    pub fn whole_value(&self) -> Option<&Value> {
        match &self.kind {
            OpKind::Add(value) | OpKind::Replace(value) if self.path.len() == 1 => Some(value),
            _ => None,
        }
    }
}

/// 400 for an operation on a field that PATCH does not change; names those that it does.
pub fn not_patchable(op: &Op, fields: &[Field]) -> ApiError {
    let allowed: Vec<_> =
        fields.iter().filter(|field| field.patchable().is_some()).map(|field| field.name).collect();
    ApiError::invalid(format!(
        "Cannot patch {}. Only the following can be updated: {}",
        op.pointer(),
        allowed.join(", ")
    ))
}

/// The operations of a body, or 400.
pub fn parse(body: &Value, version: Version) -> Result<Vec<Op>, ApiError> {
    let Value::Array(items) = body else {
        return Err(schema::wrong_type("patch", body, "'array'"));
    };
    items.iter().map(|item| operation(item, version)).collect()
}

fn operation(item: &Value, version: Version) -> Result<Op, ApiError> {
    let bad = |why: String| ApiError::invalid(format!("Schema error for patch: {why}"));
    let Value::Object(fields) = item else {
        return Err(schema::wrong_type("patch", item, "'object'"));
    };
    for key in ["op", "path"] {
        if !fields.contains_key(key) {
            return Err(bad(format!("'{key}' is a required property in {}", body::python(&shown(item)))));
        }
    }
    let unknown: Vec<_> =
        fields.keys().map(String::as_str).filter(|key| !["op", "path", "value"].contains(key)).collect();
    schema::no_others("patch", &unknown)?;
    let pointer =
        fields["path"].as_str().ok_or_else(|| schema::wrong_type("patch", &fields["path"], "'string'"))?;
    let path = split(pointer, version)
        .ok_or_else(|| bad(format!("{} does not match '^(/[\\\\w-]+)+$'", body::python(&fields["path"]))))?;
    let value = || {
        fields
            .get("value")
            .cloned()
            .ok_or_else(|| bad(format!("'value' is a required property in {}", body::python(&shown(item)))))
    };
    let kind = match fields["op"].as_str() {
        Some("add") => OpKind::Add(value()?),
        Some("replace") => OpKind::Replace(value()?),
        Some("remove") => OpKind::Remove,
        _ => {
            return Err(bad(format!(
                "{} is not one of ['add', 'replace', 'remove']",
                body::python(&fields["op"])
            )));
        }
    };
    Ok(Op { kind, path, shown: shown(item) })
}

/// An operation as a message may quote it: the pointer may name a secret, and the value may hold some.
fn shown(item: &Value) -> Value {
    let mut shown = masked_value(item);
    let secret = item.get("path").and_then(Value::as_str).is_none_or(is_secret);
    if let (true, Some(value)) = (secret, shown.get_mut("value")) {
        *value = agent_protocol::lookup::MASKED.into();
    }
    shown
}

/// Parts of a pointer. Since 1.98 keys may hold `/` and `~`, written `~1` and `~0`; before, only letters,
/// digits, `_` and `-`.
fn split(pointer: &str, version: Version) -> Option<Vec<String>> {
    let parts = pointer.strip_prefix('/')?.split('/');
    let special = version.has(98);
    parts
        .map(|part| {
            let word = |character: char| character.is_alphanumeric() || character == '_' || character == '-';
            if part.is_empty() || !(special || part.chars().all(word)) {
                return None;
            }
            Some(if special { part.replace("~1", "/").replace("~0", "~") } else { part.to_owned() })
        })
        .collect()
}

/// The document after every operation, or 400 that quotes the one that could not be applied.
pub fn apply(mut document: Map<String, Value>, ops: &[Op]) -> Result<Map<String, Value>, ApiError> {
    for op in ops {
        apply_one(&mut document, op).map_err(|reason| {
            ApiError::invalid(format!("Couldn't apply patch '{}'. Reason: {reason}", body::python(&op.shown)))
        })?;
    }
    Ok(document)
}

fn apply_one(document: &mut Map<String, Value>, op: &Op) -> Result<(), String> {
    let Some((last, parents)) = op.path.split_last() else { return Err("empty path".into()) };
    let Some((root, between)) = parents.split_first() else {
        return in_object(document, last, &op.kind);
    };
    let mut at = document.get_mut(root).ok_or_else(|| missing(root))?;
    for part in between {
        at = match at {
            Value::Object(fields) => fields.get_mut(part),
            Value::Array(items) => index(part).and_then(|index| items.get_mut(index)),
            _ => None,
        }
        .ok_or_else(|| missing(part))?;
    }
    match at {
        Value::Object(fields) => in_object(fields, last, &op.kind),
        Value::Array(items) => in_array(items, last, &op.kind),
        Value::Null if matches!(op.kind, OpKind::Add(_)) => {
            let mut fields = Map::new();
            in_object(&mut fields, last, &op.kind)?;
            *at = Value::Object(fields);
            Ok(())
        }
        _ => Err(missing(last)),
    }
}

fn missing(key: &str) -> String {
    format!("member {} does not exist", body::python(&Value::String(key.to_owned())))
}

fn in_object(fields: &mut Map<String, Value>, key: &str, kind: &OpKind) -> Result<(), String> {
    match kind {
        OpKind::Add(value) => {
            fields.insert(key.to_owned(), value.clone());
        }
        OpKind::Replace(value) => match fields.get_mut(key) {
            Some(place) => *place = value.clone(),
            None => return Err(format!("can't replace a non-existent object '{key}'")),
        },
        OpKind::Remove => {
            if fields.remove(key).is_none() {
                return Err(format!("can't remove a non-existent object '{key}'"));
            }
        }
    }
    Ok(())
}

fn in_array(items: &mut Vec<Value>, key: &str, kind: &OpKind) -> Result<(), String> {
    let at = if key == "-" && matches!(kind, OpKind::Add(_)) { Some(items.len()) } else { index(key) };
    let at = at.ok_or_else(|| format!("'{key}' is not a valid list index"))?;
    match kind {
        OpKind::Add(value) if at <= items.len() => items.insert(at, value.clone()),
        OpKind::Replace(value) if at < items.len() => items[at] = value.clone(),
        OpKind::Remove if at < items.len() => {
            items.remove(at);
        }
        _ => return Err("list index out of range".into()),
    }
    Ok(())
}

/// An index as RFC 6901 writes it: no sign, no leading zero.
fn index(text: &str) -> Option<usize> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(document: Value, patch: Value) -> Result<Value, String> {
        let ops = parse(&patch, Version(115)).map_err(|error| error.message)?;
        let Value::Object(document) = document else { unreachable!("tests give objects") };
        apply(document, &ops).map(Value::Object).map_err(|error| error.message)
    }

    #[test]
    fn operations() {
        let document = json!({"extra": {"list": [1, 2], "a": {"b": 1}}, "name": "x"});
        let patch = json!([
            {"op": "add", "path": "/extra/list/1", "value": 9},
            {"op": "add", "path": "/extra/list/-", "value": 10},
            {"op": "replace", "path": "/extra/a/b", "value": 2},
            {"op": "add", "path": "/extra/with~1slash", "value": 3},
            {"op": "remove", "path": "/name"},
        ]);
        assert_eq!(
            patched(document, patch).unwrap(),
            json!({"extra": {"list": [1, 9, 2, 10], "a": {"b": 2}, "with/slash": 3}})
        );
    }

    #[test]
    fn what_is_quoted_holds_no_secret() {
        for patch in [
            json!([{"op": "replace", "path": "/instance_info/rescue_password", "value": "hunter2"}]),
            json!([{"op": "replace", "path": "/driver_info/x", "value": {"ipmi_password": "hunter2"}}]),
            json!([{"op": "add", "value": "hunter2"}]),
            json!([{"path": "/driver_info/redfish_password", "value": "hunter2"}]),
        ] {
            let error = patched(json!({"instance_info": {}, "driver_info": {}}), patch.clone()).unwrap_err();
            assert!(error.contains("******") && !error.contains("hunter2"), "{patch}: {error}");
        }
    }

    #[test]
    fn what_cannot_be_applied_is_quoted() {
        for (patch, says) in [
            (json!({"op": "add"}), "is not of type 'array'"),
            (json!(["x"]), "'x' is not of type 'object'"),
            (json!([{"op": "add", "value": 1}]), "'path' is a required property"),
            (json!([{"op": "add", "path": "/a"}]), "'value' is a required property"),
            (json!([{"op": "test", "path": "/a", "value": 1}]), "'test' is not one of"),
            (json!([{"op": "move", "path": "/a", "from": "/b"}]), "'from' was unexpected"),
            (json!([{"op": "add", "path": "a", "value": 1}]), "'a' does not match"),
            (json!([{"op": "add", "path": "/a//b", "value": 1}]), "'/a//b' does not match"),
            (json!([{"op": "remove", "path": "/extra/nope"}]), "can't remove a non-existent object 'nope'"),
            (json!([{"op": "replace", "path": "/extra/nope", "value": 1}]), "can't replace"),
            (json!([{"op": "add", "path": "/extra/list/5", "value": 1}]), "list index out of range"),
            (json!([{"op": "add", "path": "/extra/list/01", "value": 1}]), "not a valid list index"),
            (json!([{"op": "add", "path": "/extra/x/y", "value": 1}]), "member 'x' does not exist"),
        ] {
            let error = patched(json!({"extra": {"list": []}, "a": 1}), patch.clone()).unwrap_err();
            assert!(error.contains(says), "{patch}: {error}");
        }
        let old = parse(&json!([{"op": "remove", "path": "/extra/a~1b"}]), Version(97));
        assert!(old.unwrap_err().message.contains("does not match"));
    }
}
