//! The arguments of a step, checked against what its manager declared, before anything runs.

use crate::StepError;
use agent_protocol::schema;
use agent_protocol::step::ArgInfo;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The arguments to run a step with. A step that does not say which it takes (no `argsinfo`) checks them itself.
///
/// # Errors
/// [`StepError::Argument`] naming the argument that is missing, unknown, or not as its schema says. Its value,
/// which may be a secret, is not in the error.
pub fn checked_arguments(
    given: Option<&Value>,
    declared: Option<&BTreeMap<String, ArgInfo>>,
) -> Result<Map<String, Value>, StepError> {
    let wrong = |name: &str, problem: String| StepError::Argument { name: name.to_owned(), problem };
    let args = match given {
        None => Map::new(),
        Some(Value::Object(args)) => args.clone(),
        Some(_) => return Err(wrong("args", "must be an object".into())),
    };
    let Some(declared) = declared else { return Ok(args) };
    for (name, info) in declared {
        match (args.get(name), &info.schema) {
            (None, _) if info.required => return Err(wrong(name, "required, not given".into())),
            (Some(value), Some(expected)) => {
                schema::check(name, expected, value)
                    .map_err(|problem| StepError::argument(name, &problem))?;
            }
            _ => {}
        }
    }
    match args.keys().find(|name| !declared.contains_key(*name)) {
        Some(unknown) => Err(wrong(unknown, "this step has no such argument".into())),
        None => Ok(args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problem(given: Value) -> String {
        let declared = serde_json::from_value(json!({
            "size": {"description": "GiB", "required": true, "schema": {"type": "integer", "minimum": 1, "maximum": 9}},
            "level": {"description": "RAID", "schema": {"enum": ["0", "1"]}},
            "free": {"description": "anything"},
        }));
        let declared: BTreeMap<String, ArgInfo> = declared.expect("argsinfo");
        checked_arguments(Some(&given), Some(&declared))
            .map(|_| ())
            .map_err(|e| e.to_string())
            .err()
            .unwrap_or_default()
    }

    #[test]
    fn a_wrong_argument_is_named_and_its_value_is_not_shown() {
        assert_eq!(problem(json!({"size": 4, "level": "1", "free": [null]})), "");
        for (given, expected) in [
            (json!({}), r#"argument "size": required, not given"#),
            (json!({"size": "secret"}), r#"argument "size": must be a whole number"#),
            (json!({"size": 0}), r#"argument "size": must be at least 1"#),
            (json!({"size": 10}), r#"argument "size": must be at most 9"#),
            (json!({"size": 4, "level": "secret"}), r#"argument "level": must be one of "0", "1""#),
            (json!({"size": 4, "fast": "secret"}), r#"argument "fast": this step has no such argument"#),
            (json!(["secret"]), r#"argument "args": must be an object"#),
        ] {
            assert_eq!(problem(given), expected);
        }
    }

    #[test]
    fn a_step_that_declares_nothing_gets_whatever_was_given() {
        assert_eq!(
            checked_arguments(Some(&json!({"x": 1})), None).expect("taken"),
            *json!({"x": 1}).as_object().expect("object")
        );
        assert!(checked_arguments(Some(&json!({"x": 1})), Some(&BTreeMap::new())).is_err());
    }
}
