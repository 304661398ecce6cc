//! JSON Schema of step arguments: the keywords that arguments need, and no others.
//!
//! Known are `type`, `enum`, `minimum`, `maximum`, `minLength`, `maxLength`, `minItems`, `maxItems`, `items`,
//! `required`, `properties`, `additionalProperties`, and the annotations `title`,
//! `description`, `default`. A schema with another keyword, or a known one in a shape that is not understood,
//! accepts nothing: half a check would look like a whole one.

use serde_json::{Map, Value};

/// Schemas and values nested deeper than this are not looked into.
const DEEPEST: usize = 32;

/// Whether the value called `name` is as its schema says.
///
/// # Errors
/// The first thing that does not hold, or that the schema is not understood: `settings[0].name must be a
/// string`. The text names places and rules and never repeats the value, which may be a secret.
pub fn check(name: &str, schema: &Value, value: &Value) -> Result<(), String> {
    at(schema, value, name, 0)
}

/// Whether the schema of what is called `name` is understood in all its parts, so that [`check`] can accept something.
///
/// # Errors
/// The first keyword that is not, with its place.
pub fn understood(name: &str, schema: &Value) -> Result<(), String> {
    understood_at(name, schema, 0)
}

fn understood_at(place: &str, schema: &Value, depth: usize) -> Result<(), String> {
    let Value::Object(rules) = schema else { return Err(said(place, "has a schema that is no object")) };
    if depth > DEEPEST {
        return Err(said(place, "is nested too deeply"));
    }
    for (keyword, rule) in rules {
        let strings = |list: &Vec<Value>| list.iter().all(Value::is_string);
        let good = match keyword.as_str() {
            "title" | "description" | "default" => true,
            "type" => types(rule).is_some(),
            "enum" => rule.is_array(),
            "minimum" | "maximum" => rule.is_number(),
            "minLength" | "maxLength" | "minItems" | "maxItems" => rule.is_u64(),
            "required" => rule.as_array().is_some_and(strings),
            "items" => understood_at(&format!("{place}[]"), rule, depth + 1).map(|()| true)?,
            "properties" => match rule.as_object() {
                Some(known) => known
                    .iter()
                    .try_for_each(|(name, rule)| understood_at(&format!("{place}.{name}"), rule, depth + 1))
                    .map(|()| true)?,
                None => false,
            },
            "additionalProperties" if rule.is_boolean() => true,
            "additionalProperties" => understood_at(&format!("{place}.*"), rule, depth + 1).map(|()| true)?,
            unknown => return Err(said(place, &format!("has a schema with the unknown keyword {unknown}"))),
        };
        if !good {
            return Err(said(place, &format!("has a schema whose {keyword} is not understood")));
        }
    }
    Ok(())
}

/// A name of a `type`, in words, and whether a value is of it.
type Type = (&'static str, &'static str, fn(&Value) -> bool);

const TYPES: [Type; 7] = [
    ("null", "null", Value::is_null),
    ("boolean", "true or false", Value::is_boolean),
    ("integer", "a whole number", |value| value.as_f64().is_some_and(|number| number.fract() == 0.0)),
    ("number", "a number", Value::is_number),
    ("string", "a string", Value::is_string),
    ("array", "a list", Value::is_array),
    ("object", "an object", Value::is_object),
];

/// The types of a `type`, if there is one and all are known.
fn types(rule: &Value) -> Option<Vec<&'static Type>> {
    let names = if rule.is_string() { std::slice::from_ref(rule) } else { rule.as_array()? };
    let known = |name: &str| TYPES.iter().find(|(known, ..)| *known == name);
    let types: Option<Vec<_>> = names.iter().map(|name| known(name.as_str()?)).collect();
    types.filter(|types| !types.is_empty())
}

fn at(schema: &Value, value: &Value, place: &str, depth: usize) -> Result<(), String> {
    let Value::Object(rules) = schema else { return Err(said(place, "has a schema that is no object")) };
    if depth > DEEPEST {
        return Err(said(place, "is nested too deeply"));
    }
    let subject = Subject { rules, value, place, depth };
    // A wrong type is reported before anything else that does not hold.
    if let Some(rule) = rules.get("type") {
        subject.keyword("type", rule)?;
    }
    rules.iter().try_for_each(|(name, rule)| subject.keyword(name, rule))
}

fn said(place: &str, what: &str) -> String {
    format!("{place} {what}")
}

fn not_understood(place: &str, name: &str) -> String {
    said(place, &format!("has a schema whose {name} is not understood"))
}

/// Whether a bound of this name holds, and its words.
fn bounded<T: PartialOrd>(name: &str, found: &T, bound: &T) -> (bool, &'static str) {
    if name.starts_with("min") { (found >= bound, "at least") } else { (found <= bound, "at most") }
}

/// A value next to the schema that it has to fit.
struct Subject<'a> {
    rules: &'a Map<String, Value>,
    value: &'a Value,
    place: &'a str,
    depth: usize,
}

impl Subject<'_> {
    /// Whether one keyword of the schema holds.
    fn keyword(&self, name: &str, rule: &Value) -> Result<(), String> {
        let Self { value, place, depth, .. } = *self;
        let not_understood = || not_understood(place, name);
        let hold = |holds: bool, what: String| if holds { Ok(()) } else { Err(said(place, &what)) };
        match name {
            "title" | "description" | "default" => Ok(()),
            "type" => {
                let types = types(rule).ok_or_else(not_understood)?;
                let words: Vec<&str> = types.iter().map(|(_, words, _)| *words).collect();
                hold(types.iter().any(|(.., is_of)| is_of(value)), format!("must be {}", words.join(" or ")))
            }
            "enum" => {
                let allowed = rule.as_array().ok_or_else(not_understood)?;
                let list = allowed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                hold(allowed.contains(value), format!("must be one of {list}"))
            }
            "minimum" | "maximum" => {
                let bound = rule.as_f64().ok_or_else(not_understood)?;
                let Some(number) = value.as_f64() else { return Ok(()) };
                let (holds, word) = bounded(name, &number, &bound);
                hold(holds, format!("must be {word} {rule}"))
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" => {
                let bound = rule.as_u64().ok_or_else(not_understood)?;
                let (length, noun) = match value {
                    Value::String(text) if name.ends_with("Length") => (text.chars().count(), "characters"),
                    Value::Array(list) if name.ends_with("Items") => (list.len(), "entries"),
                    _ => return Ok(()),
                };
                let (holds, word) = bounded(name, &(length as u64), &bound);
                hold(holds, format!("must have {word} {bound} {noun}"))
            }
            "items" => {
                let Value::Array(list) = value else { return Ok(()) };
                let mut entries = list.iter().enumerate();
                entries.try_for_each(|(n, entry)| at(rule, entry, &format!("{place}[{n}]"), depth + 1))
            }
            "required" | "properties" | "additionalProperties" => self.members(name, rule),
            _ => Err(said(place, &format!("has a schema with the unknown keyword {name}"))),
        }
    }

    /// A keyword of the members of an object; it holds for every other value.
    fn members(&self, name: &str, rule: &Value) -> Result<(), String> {
        let Self { rules, value, place, depth } = *self;
        let not_understood = || not_understood(place, name);
        let inner = |name: &str, schema: &Value, value: &Value| {
            at(schema, value, &format!("{place}.{name}"), depth + 1)
        };
        match name {
            "required" => {
                let names = rule.as_array().ok_or_else(not_understood)?;
                let Value::Object(object) = value else { return Ok(()) };
                names.iter().try_for_each(|name| {
                    let name = name.as_str().ok_or_else(not_understood)?;
                    if object.contains_key(name) {
                        Ok(())
                    } else {
                        Err(said(place, &format!("lacks '{name}'")))
                    }
                })
            }
            "properties" => {
                let known = rule.as_object().ok_or_else(not_understood)?;
                let Value::Object(object) = value else { return Ok(()) };
                let mut known =
                    known.iter().filter_map(|(name, schema)| Some((name, schema, object.get(name)?)));
                known.try_for_each(|(name, schema, value)| inner(name, schema, value))
            }
            _ if !(rule.is_boolean() || rule.is_object()) => Err(not_understood()),
            _ => {
                let Value::Object(object) = value else { return Ok(()) };
                let known = rules.get("properties").and_then(Value::as_object);
                let mut others =
                    object.iter().filter(|(name, _)| !known.is_some_and(|known| known.contains_key(*name)));
                others.try_for_each(|(name, value)| {
                    let name: String = name.chars().take(64).collect();
                    match rule.as_bool() {
                        Some(true) => Ok(()),
                        Some(false) => Err(said(place, &format!("has the unknown key '{name}'"))),
                        None => inner(&name, rule, value),
                    }
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fault(schema: Value, value: Value) -> String {
        check("it", &schema, &value).unwrap_err()
    }

    #[test]
    fn every_keyword_accepts_and_refuses() {
        let cases = [
            (json!({"type": "string"}), json!("x"), json!(1), " must be a string"),
            (json!({"type": ["null", "integer"]}), json!(2.0), json!(2.5), " must be null or a whole number"),
            (json!({"type": "number"}), json!(2.5), json!("2"), " must be a number"),
            (json!({"type": "boolean"}), json!(false), json!(0), " must be true or false"),
            (json!({"type": "array"}), json!([]), json!({}), " must be a list"),
            (json!({"type": "object"}), json!({}), json!(null), " must be an object"),
            (json!({"enum": ["0", "1"]}), json!("1"), json!("2"), " must be one of \"0\", \"1\""),
            (json!({"minimum": 0, "type": "number"}), json!(0), json!(-0.5), " must be at least 0"),
            (json!({"maximum": 9}), json!("not a number"), json!(9.5), " must be at most 9"),
            (json!({"minLength": 1}), json!("ä"), json!(""), " must have at least 1 characters"),
            (json!({"maxLength": 1}), json!("ä"), json!("ää"), " must have at most 1 characters"),
            (json!({"minItems": 1}), json!([0]), json!([]), " must have at least 1 entries"),
            (json!({"maxItems": 1}), json!([0]), json!([0, 0]), " must have at most 1 entries"),
            (json!({"required": ["a"]}), json!({"a": 0}), json!({"b": 0}), " lacks 'a'"),
            (
                json!({"properties": {"a": {}}, "additionalProperties": false}),
                json!({"a": 0}),
                json!({"a": 0, "b": 0}),
                " has the unknown key 'b'",
            ),
            (
                json!({"additionalProperties": {"type": "string"}}),
                json!({"a": ""}),
                json!({"a": "", "b": 0}),
                ".b must be a string",
            ),
            (
                json!({"items": {"properties": {"a": {"type": "string"}}}}),
                json!([{"a": ""}, {}]),
                json!([{}, {"a": 5}]),
                "[1].a must be a string",
            ),
        ];
        for (schema, good, bad, words) in cases {
            assert_eq!(understood("it", &schema), Ok(()), "{schema}");
            assert_eq!(check("it", &schema, &good), Ok(()), "{schema} of {good}");
            assert_eq!(fault(schema, bad), format!("it{words}"));
        }
    }

    #[test]
    fn a_schema_that_is_not_understood_accepts_nothing() {
        for schema in [
            json!({"pattern": "^a$"}),
            json!({"type": "text"}),
            json!({"type": []}),
            json!({"type": ["object", 3]}),
            json!({"minimum": "0"}),
            json!({"additionalProperties": "no"}),
            json!({"properties": {"a": {"$ref": "#"}}}),
            json!([]),
        ] {
            assert!(understood("it", &schema).is_err(), "{schema}");
            fault(schema, json!({"a": 1}));
        }
        let mut deep = (json!({}), json!(0));
        for _ in 0..100 {
            deep = (json!({"items": deep.0}), json!([deep.1]));
        }
        assert!(understood("it", &deep.0).is_err_and(|error| error.contains("too deeply")));
        assert!(fault(deep.0, deep.1).contains("too deeply"));
        let hidden = json!({"properties": {"a": {"items": {"pattern": "^a$"}}}});
        assert_eq!(check("it", &hidden, &json!({})), Ok(()), "nothing is looked at");
        let expected = "it.a[] has a schema with the unknown keyword pattern";
        assert_eq!(understood("it", &hidden), Err(expected.to_owned()));
    }
}
