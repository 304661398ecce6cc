//! Validates a rule before it is stored. A rule that would fail at every inspection is rejected.

use crate::action::{API_CALL, no_api_call};
use crate::attribute::Attributes;
use crate::findings::Level;
use crate::python::repr;
use crate::signature::{OperationError, Signature, named, turns};
use crate::template::{Part, parse};
use crate::{action, condition, path};
use model::{Node, Resource, traits};
use serde_json::{Map, Value};

/// Checks a list of conditions.
///
/// # Errors
/// What is wrong, in Ironic's words where it has any. No argument's value is quoted: it may be a secret.
pub fn conditions(value: &Value) -> Result<(), String> {
    operations(value, true)
}

/// Checks a list of actions.
///
/// # Errors
/// As of [`conditions`].
pub fn actions(value: &Value) -> Result<(), String> {
    operations(value, false)
}

fn operations(value: &Value, conditions: bool) -> Result<(), String> {
    let Value::Array(items) = value else { return Err("it is not of type 'array'".to_owned()) };
    for item in items {
        let Value::Object(fields) = item else { return Err("an item is not of type 'object'".to_owned()) };
        for key in ["op", "args"] {
            if !fields.contains_key(key) {
                return Err(format!("'{key}' is a required property"));
            }
        }
        let op = fields["op"].as_str().unwrap_or_default();
        if !conditions && op == API_CALL {
            return Err(no_api_call());
        }
        let known = match conditions {
            true => condition::find(op).map(|(operator, _)| &operator.signature),
            false => action::find(op).map(|action| &action.signature),
        };
        let signature = known.ok_or_else(|| unknown(&fields["op"], conditions))?;
        let bad = |why: String| format!("{}: {why}", signature.op);
        if fields.get("loop").is_some_and(|items| !items.is_array() && !items.is_object()) {
            return Err(bad("loop is not of type 'array', 'object'".to_owned()));
        }
        let multiple = fields.get("multiple").map(Value::as_str);
        if multiple.is_some_and(|how| !matches!(how, Some("any" | "all" | "first" | "last"))) {
            return Err(bad("multiple is not one of ['any', 'all', 'first', 'last']".to_owned()));
        }
        let args = named(signature, &fields["args"]).map_err(|OperationError(why)| bad(why))?;
        // A list is a form of old: Ironic stores it whatever stands in it, and fails when it applies the rule.
        let listed = fields["args"].is_array();
        arguments(signature, &args, turns(item).is_some(), listed).map_err(|OperationError(why)| bad(why))?;
    }
    Ok(())
}

fn unknown(op: &Value, conditions: bool) -> String {
    let shown: String = repr(op, true).chars().take(64).collect();
    let quoted = |op: &'static str| format!("'{op}'");
    let ops: Vec<_> = match conditions {
        true => condition::OPERATORS.iter().map(|known| quoted(known.signature.op)).collect(),
        false => action::ACTIONS.iter().map(|known| quoted(known.signature.op)).collect(),
    };
    format!("{shown} is not one of [{}]", ops.join(", "))
}

/// Check what can be checked of arguments before their templates are filled in; in a loop all of them are templates.
fn arguments(
    signature: &Signature,
    args: &Map<String, Value>,
    looped: bool,
    listed: bool,
) -> Result<(), OperationError> {
    for (name, value) in args {
        if looped || signature.filled.contains(&name.as_str()) {
            plain_fields(value)?;
        }
        let template = looped && value.as_str().is_some_and(|text| text.contains('{'));
        let text = || match value {
            Value::String(text) => Ok(text.as_str()),
            _ => Err(OperationError(format!("{name} is not of type 'string'"))),
        };
        match (signature.op, name.as_str()) {
            (_, "values") if matches!(signature.op, "eq" | "lt" | "gt") && !listed && !value.is_array() => {
                return Err(OperationError("values is not of type 'array'".to_owned()));
            }
            _ if template => {}
            ("matches", "regex") => drop(condition::regex(text()?, true)?),
            ("contains", "regex") => drop(condition::regex(text()?, false)?),
            ("log", "level") if Level::of(text()?).is_none() => return Err(OperationError(Level::unknown())),
            ("add-trait", "name") if !traits::is_name(text()?) => {
                return Err(OperationError("name is no name of a trait".to_owned()));
            }
            ("set-plugin-data" | "extend-plugin-data" | "unset-plugin-data", _) => {}
            // What looks like a template is no place: a client may mean one all the same.
            (_, "path") if text()?.contains('{') => {}
            (op, "path") => {
                let name = path::parts(text()?).into_iter().next().unwrap_or_default();
                if op.contains("-port-") {
                    Resource::kind(&name)?
                } else {
                    Node::kind(&name)?
                };
            }
            (_, "name" | "port_id") => {
                text()?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reject templates with format specifications.
fn plain_fields(value: &Value) -> Result<(), OperationError> {
    match value {
        Value::String(text) => {
            let known = ["node", "inventory", "plugin_data", "item"];
            let strange = |part: &Part| matches!(part, Part::Field(field) if field.strange && known.contains(&field.root));
            if parse(text).is_some_and(|parts| parts.iter().any(strange)) {
                return Err(OperationError(
                    "format specifications ({field:…}, {field!…}) are not supported".to_owned(),
                ));
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(plain_fields),
        Value::Object(fields) => fields.values().try_for_each(plain_fields),
        _ => Ok(()),
    }
}
