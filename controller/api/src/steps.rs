//! Steps as clients write them: with a verb, in a deploy template.

use crate::body::python;
use model::{RequestedStep, StepKind};
use serde_json::{Map, Number, Value};

/// Interfaces that have steps.
const INTERFACES: [&str; 7] = ["vendor", "power", "management", "firmware", "deploy", "bios", "raid"];
/// Ironic's additional one for service steps.
const NETWORK: &str = "network";

/// One step by its schema; the error is the schema's, without the step itself.
pub fn requested(item: &Value, kind: StepKind) -> Result<RequestedStep, String> {
    let Value::Object(fields) = item else {
        return Err(format!("{} is not of type 'object'", python(item)));
    };
    let deploys = kind == StepKind::Deploy;
    let required: &[&str] =
        if deploys { &["interface", "step", "args", "priority"] } else { &["interface", "step"] };
    for key in required.iter().copied() {
        if !fields.contains_key(key) {
            return Err(format!("'{key}' is a required property"));
        }
    }
    let known: &[&str] = if deploys {
        required
    } else {
        &["interface", "step", "args", "order", "execute_on_child_nodes", "limit_child_node_execution"]
    };
    if let Some(unknown) = fields.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("Additional properties are not allowed ('{unknown}' was unexpected)"));
    }
    let offers = |name: &&str| INTERFACES.contains(name) || kind == StepKind::Service && *name == NETWORK;
    let Value::String(interface) = &fields["interface"] else {
        return Err(format!("{} is not of type 'string'", python(&fields["interface"])));
    };
    let interface = Some(interface.as_str()).filter(offers).ok_or_else(|| {
        let known: Vec<_> = INTERFACES.iter().map(|name| format!("'{name}'")).collect();
        format!("{} is not one of [{}]", python(&fields["interface"]), known.join(", "))
    })?;
    let name = match &fields["step"] {
        Value::String(name) if name.is_empty() => return Err("'' should be non-empty".into()),
        Value::String(name) => name,
        other => return Err(format!("{} is not of type 'string'", python(other))),
    };
    let args = match fields.get("args") {
        None => Map::new(),
        Some(Value::Object(args)) => args.clone(),
        Some(other) => return Err(format!("{} is not of type 'object'", python(other))),
    };
    match fields.get("execute_on_child_nodes") {
        None | Some(Value::Bool(false)) => {}
        Some(Value::Bool(true)) => return Err("'execute_on_child_nodes': nodes have no children here".into()),
        Some(other) => return Err(format!("{} is not of type 'boolean'", python(other))),
    }
    if let Some(other) = fields.get("limit_child_node_execution").filter(|value| !value.is_array()) {
        return Err(format!("{} is not of type 'array'", python(other)));
    }
    let priority = fields.get("priority").map(priority).transpose()?;
    Ok(RequestedStep { interface: interface.to_owned(), step: name.clone(), args, priority })
}

/// A non-negative integer, also as its digits.
pub fn priority(value: &Value) -> Result<Number, String> {
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    let bad = |why: &str| Err(format!("{} {why}", python(value)));
    match value {
        Value::Number(number) if number.as_u64().is_some() => Ok(number.clone()),
        Value::Number(number) => match number.as_f64().unwrap_or(f64::NAN) {
            below if below < 0.0 => bad("is less than the minimum of 0"),
            // 15.0 is an integer to JSON Schema.
            whole if whole.fract() == 0.0 && whole <= LARGEST => {
                Ok(format!("{whole:.0}").parse::<u64>().map_err(|error| error.to_string())?.into())
            }
            _ => no_integer(value),
        },
        Value::String(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse::<u64>().map(Number::from).or_else(|_| bad("is too large"))
        }
        Value::String(text) if text.is_empty() => bad("should be non-empty"),
        Value::String(_) => bad("does not match '^[0-9]+$'"),
        other => no_integer(other),
    }
}

fn no_integer<T>(value: &Value) -> Result<T, String> {
    let value = python(value);
    Err(format!(
        "{value} is not valid under any of the given schemas. Possible root cause: {value} is not of type \
         'integer'"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn priorities_are_whole_numbers() {
        for (given, kept) in
            [(json!(0), 0), (json!("15"), 15), (json!(15.0), 15), (json!(1_u64 << 60), 1_u64 << 60)]
        {
            assert_eq!(priority(&given), Ok(Number::from(kept)), "{given}");
        }
        for (given, says) in [
            (json!(-1), "less than the minimum"),
            (json!(1.5), "not of type 'integer'"),
            (json!(1e20), "not of type 'integer'"),
            (json!("x"), "does not match"),
            (json!("-1"), "does not match"),
            (json!(""), "non-empty"),
            (json!("99999999999999999999"), "too large"),
            (json!(true), "not of type 'integer'"),
            (json!(null), "not of type 'integer'"),
        ] {
            assert!(priority(&given).unwrap_err().contains(says), "{given}");
        }
    }
}
