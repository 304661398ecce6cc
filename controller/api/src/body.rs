//! Typed reading of JSON bodies, with Ironic's words for what is wrong.

use crate::args::{as_boolean, as_uuid};
use crate::error::ApiError;
use model::mask::{is_secret, masked_value};
use serde_json::{Map, Value};
use uuid::Uuid;

/// 400 that names every field that is not one of `known`.
pub fn only(fields: &Map<String, Value>, known: &[&str]) -> Result<(), ApiError> {
    let unknown: Vec<_> = fields.keys().map(String::as_str).filter(|name| !known.contains(name)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(format!("Unexpected arguments: {}", unknown.join(", "))))
}

/// A string, or nothing.
pub fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, ApiError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        // What holds texts may hold the secret all the same.
        Some(Value::Array(_) | Value::Object(_)) if is_secret(name) => {
            Err(ApiError::invalid(format!("Expected string for {name}")))
        }
        Some(other) => Err(ApiError::invalid(format!("Expected string for {name}: {}", python(other)))),
    }
}

/// A string that must be there.
pub fn required<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a str, ApiError> {
    text(fields, name)?.ok_or_else(|| ApiError::invalid(format!("Missing mandatory parameter: {name}")))
}

/// A boolean, also as a word, or nothing.
pub fn boolean(name: &str, value: &Value) -> Result<Option<bool>, ApiError> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(value) => Ok(Some(*value)),
        Value::String(text) => as_boolean(name, text).map(Some),
        other => as_boolean(name, &python(other)).map(Some),
    }
}

/// A UUID as text, or nothing.
pub fn uuid(name: &str, value: &Value) -> Result<Option<Uuid>, ApiError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => as_uuid(name, text).map(Some),
        other => Err(ApiError::invalid(format!("Expected UUID for {name}: {}", python(other)))),
    }
}

/// A value as Python's `repr` shows it, shortened and without its secrets: how Ironic's messages quote what they were
/// given.
pub fn python(value: &Value) -> String {
    const LONGEST: usize = 200;
    let mut out = inspection_rules::repr(&masked_value(value), false);
    if out.len() > LONGEST {
        let end = out.char_indices().map(|(at, _)| at).take_while(|at| *at <= LONGEST).last().unwrap_or(0);
        out.truncate(end);
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_without_their_secrets() {
        let given = serde_json::json!({"ipmi_password": "hunter2", "deep": [{"agent_token": "hunter2"}]});
        assert_eq!(python(&given), "{'deep': [{'agent_token': '******'}], 'ipmi_password': '******'}");
        let given = serde_json::json!({"agent_token": ["hunter2"], "reason": {"password": "hunter2"}});
        for name in ["agent_token", "reason"] {
            let error = text(given.as_object().unwrap(), name).unwrap_err();
            assert!(error.message.starts_with(&format!("Expected string for {name}")), "{}", error.message);
            assert!(!error.message.contains("hunter2"), "{}", error.message);
        }
    }

    #[test]
    fn values_are_quoted_as_python_does() {
        let value = serde_json::json!({"a": [1, null, true, "it's"], "b": "x\ny"});
        assert_eq!(python(&value), r#"{'a': [1, None, True, "it's"], 'b': 'x\ny'}"#);
        assert!(python(&Value::String("ä".repeat(500))).len() < 210);
    }
}
