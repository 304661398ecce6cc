//! Checks a value against the part of JSON Schema (draft 2020-12) that step arguments are described with:
//! `type`, `enum`, `minimum`, `maximum`, `required`, `properties`, `additionalProperties`, `items`.
//!
//! Other keywords are ignored, as that standard says of unknown ones. What is wrong with a value is told
//! without the value, which may be a password.

use serde_json::{Map, Value};

/// Whether `value` is what `schema` describes.
///
/// # Errors
/// One line saying what is wrong, to be put behind the name of the value: `must be an integer, not a string`,
/// `must have "size"`. Of a part of the value it names the part: `size: must be at least 1`.
pub fn check(schema: &Value, value: &Value) -> Result<(), String> {
    if *schema == Value::Bool(false) {
        return Err("is not known".into());
    }
    check_type(&schema["type"], value)?;
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
        return Err(format!("must be {}", either(allowed.iter().map(Value::to_string))));
    }
    if let Some(number) = value.as_f64() {
        check_range(schema, number)?;
    }
    match value {
        Value::Object(object) => check_object(schema, object),
        Value::Array(items) => check_items(&schema["items"], items),
        _ => Ok(()),
    }
}

fn check_type(expected: &Value, value: &Value) -> Result<(), String> {
    let expected: Vec<&str> = match expected {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    if expected.iter().any(|name| is(name, value)) {
        return Ok(());
    }
    let expected = either(expected.into_iter().map(|name| with_article(name).to_owned()));
    Err(format!("must be {expected}, not {}", with_article(name_of(value))))
}

fn check_range(schema: &Value, number: f64) -> Result<(), String> {
    if let Some(minimum) = schema["minimum"].as_f64().filter(|&minimum| number < minimum) {
        return Err(format!("must be at least {minimum}"));
    }
    if let Some(maximum) = schema["maximum"].as_f64().filter(|&maximum| number > maximum) {
        return Err(format!("must be at most {maximum}"));
    }
    Ok(())
}

fn check_object(schema: &Value, object: &Map<String, Value>) -> Result<(), String> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|&name| !object.contains_key(name)) {
        return Err(format!("must have {missing:?}"));
    }
    for (name, value) in object {
        let described = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
        check(described, value).map_err(|problem| format!("{name}: {problem}"))?;
    }
    Ok(())
}

fn check_items(schema: &Value, items: &[Value]) -> Result<(), String> {
    for (index, item) in items.iter().enumerate() {
        check(schema, item).map_err(|problem| format!("[{index}]: {problem}"))?;
    }
    Ok(())
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        // 4.0 is an integer there.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        name => name_of(value) == name,
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn with_article(name: &str) -> &str {
    match name {
        "boolean" => "true or false",
        "integer" => "an integer",
        "number" => "a number",
        "string" => "a string",
        "array" => "an array",
        "object" => "an object",
        other => other,
    }
}

fn either(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::check;
    use serde_json::{Value, json};

    fn problem(schema: &Value, value: Value) -> String {
        check(schema, &value).expect_err("it does not fit")
    }

    #[test]
    fn types_limits_and_choices() {
        let count = json!({"type": "integer", "minimum": 1, "maximum": 16});
        for good in [json!(1), json!(16), json!(4.0)] {
            assert_eq!(check(&count, &good), Ok(()));
        }
        assert_eq!(problem(&count, json!("4")), "must be an integer, not a string");
        assert_eq!(problem(&count, json!(1.5)), "must be an integer, not a number");
        assert_eq!(problem(&count, json!(0)), "must be at least 1");
        assert_eq!(problem(&count, json!(17)), "must be at most 16");
        let level = json!({"type": ["string", "null"], "enum": ["0", "1+0", null]});
        assert_eq!(check(&level, &Value::Null), Ok(()));
        assert_eq!(problem(&level, json!("5")), r#"must be "0" or "1+0" or null"#);
        assert_eq!(problem(&level, json!(false)), "must be a string or null, not true or false");
        assert_eq!(check(&json!({"description": "anything"}), &json!([1])), Ok(()));
    }

    #[test]
    fn parts_are_named_and_values_are_not_shown() {
        let disks = json!({
            "type": "array",
            "items": {
                "type": "object",
                "required": ["size"],
                "properties": {"size": {"type": "integer", "minimum": 1}, "password": {"type": "integer"}},
                "additionalProperties": false,
            },
        });
        assert_eq!(check(&disks, &json!([{"size": 1}, {"size": 2}])), Ok(()));
        assert_eq!(problem(&disks, json!([{"size": 1}, {}])), r#"[1]: must have "size""#);
        assert_eq!(problem(&disks, json!([{"size": 0}])), "[0]: size: must be at least 1");
        assert_eq!(problem(&disks, json!([{"size": 1, "x": 1}])), "[0]: x: is not known");
        let told = problem(&disks, json!([{"size": 1, "password": "hunter2"}]));
        assert_eq!(told, "[0]: password: must be an integer, not a string");
        let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
        assert_eq!(problem(&texts, json!({"a": "1", "b": 2})), "b: must be a string, not a number");
    }
}
