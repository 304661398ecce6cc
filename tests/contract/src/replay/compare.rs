//! Two documents, field by field.

use super::names::{Names, timeless};
use serde_json::{Map, Value, json};

/// A field that is not the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// JSON pointer into `{"status": …, "headers": …, "body": …}`.
    pub at: String,
    /// What the recording has there, without what differs from run to run; `(absent)`.
    pub theirs: Value,
    /// What we have there.
    pub ours: Value,
}

/// Appends every difference between the two to `out`.
pub fn compare(theirs: &Value, ours: &Value, at: &str, names: &mut Names, out: &mut Vec<Difference>) {
    match (theirs, ours) {
        (Value::Object(a), Value::Object(b)) => objects(a, b, at, names, out),
        // Lists of other lengths have nothing that could be compared item by item.
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(a, b, &format!("{at}/{index}"), names, out);
            }
        }
        (Value::String(a), Value::String(b)) => match (error(at, a), error(at, b)) {
            (Some(a), Some(b)) => compare(&a, &b, at, names, out),
            _ if names.same(a, b) => {}
            _ => out.push(difference(Some(theirs), Some(ours), at)),
        },
        _ if theirs == ours => {}
        // 10 and 10.0 are one number.
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => {}
        _ => out.push(difference(Some(theirs), Some(ours), at)),
    }
}

fn objects(
    a: &Map<String, Value>,
    b: &Map<String, Value>,
    at: &str,
    names: &mut Names,
    out: &mut Vec<Difference>,
) {
    let mut keys: Vec<_> = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))).collect();
    // A new UUID is learnt where it stands alone; other fields have it in their text.
    keys.sort_by_key(|key| (*key != "uuid", *key));
    for key in keys {
        let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        either(a.get(key), b.get(key), &at, names, out);
    }
}

fn either(a: Option<&Value>, b: Option<&Value>, at: &str, names: &mut Names, out: &mut Vec<Difference>) {
    match (a, b) {
        (Some(a), Some(b)) => compare(a, b, at, names, out),
        (None, None) => {}
        (a, b) => out.push(difference(a, b, at)),
    }
}

/// The JSON in the JSON of an error.
fn error(at: &str, text: &str) -> Option<Value> {
    if at.ends_with("/error_message") { serde_json::from_str(text).ok() } else { None }
}

fn difference(theirs: Option<&Value>, ours: Option<&Value>, at: &str) -> Difference {
    let side = |value: Option<&Value>| value.map_or_else(|| json!("(absent)"), stable);
    Difference { at: at.to_owned(), theirs: side(theirs), ours: side(ours) }
}

/// `value` without what differs from run to run. Of what is large only that it is there.
fn stable(value: &Value) -> Value {
    const LONGEST: usize = 200;
    if let Value::String(text) = value {
        let text = timeless(text);
        let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(end, _)| end);
        return Value::String(text[..end].to_owned());
    }
    match value {
        Value::Object(fields) if !fields.is_empty() => json!("(an object)"),
        Value::Array(items) if !items.is_empty() => json!("(a list)"),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_counts() {
        let mut out = Vec::new();
        let mut names = Names::default();
        let theirs = json!({"a": 1, "b": {"c/d": [1, 2], "i": [1]}, "e": null, "f": true});
        let ours = json!({"a": 1, "b": {"c/d": [1, 3], "i": [1, 2]}, "f": 1, "g": {"h": 1}});
        compare(&theirs, &ours, "", &mut names, &mut out);
        let said: Vec<_> = out.iter().map(|one| format!("{} {} {}", one.at, one.theirs, one.ours)).collect();
        let wanted = [
            r#"/b/c~1d/1 2 3"#,
            r#"/b/i "(a list)" "(a list)""#,
            r#"/e null "(absent)""#,
            r#"/f true 1"#,
            r#"/g "(absent)" "(an object)""#,
        ];
        assert_eq!(said, wanted);
        out.clear();
        let error = |text: &str| json!({"error_message": json!({"faultcode": "Client", "faultstring": text}).to_string()});
        compare(&error("a"), &error("b"), "", &mut names, &mut out);
        assert_eq!(out.len(), 1);
        assert_eq!(out[0].at, "/error_message/faultstring");
    }
}
