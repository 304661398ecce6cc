//! Values as Python sees them, for rules are written against it: `str`, `repr`, `==`, `<`, truth.

use serde_json::{Number, Value};
use std::cmp::Ordering;

/// Keys of the inventory and of plugin data whose values rules do not get to see (Ironic's `SENSITIVE_FIELDS`).
const HIDDEN: [&str; 3] = ["password", "auth_token", "bmc_password"];

/// What they see in its place.
pub const MASK: &str = "***";

/// Whether the value of this key is hidden.
pub fn is_hidden(key: &str) -> bool {
    HIDDEN.contains(&key)
}

/// `str(value)`. With `mask`, values of hidden keys are not in it.
pub fn text(value: &Value, mask: bool) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => repr(other, mask),
    }
}

/// Python's `repr(value)`, as Ironic's messages quote what they were given. With `mask`, values of hidden keys are not in it.
pub fn repr(value: &Value, mask: bool) -> String {
    let mut out = String::new();
    write(value, mask, &mut out);
    out
}

fn write(value: &Value, mask: bool, out: &mut String) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(text) => quote(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write(item, mask, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (index, (key, value)) in fields.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                quote(key, out);
                out.push_str(": ");
                match mask && is_hidden(key) {
                    true => quote(MASK, out),
                    false => write(value, mask, out),
                }
            }
            out.push('}');
        }
    }
}

fn quote(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other if other == quote => out.extend(['\\', other]),
            other if other.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(other))),
            other => out.push(other),
        }
    }
    out.push(quote);
}

/// A fraction has a point or an exponent, an exponent has a sign and two digits, from 1e16 and below 1e-4.
fn number_text(number: &Number) -> String {
    let Some(value) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        small @ -4..16 => match format!("{value}") {
            text if text.contains('.') || small < 0 => text,
            whole => whole + ".0",
        },
        other => format!("{digits}e{}{:02}", if other < 0 { '-' } else { '+' }, other.abs()),
    }
}

/// A number or a boolean, which is one too.
enum Numeric {
    Whole(i128),
    Fraction(f64),
}

impl Numeric {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(truth) => Some(Self::Whole(i128::from(*truth))),
            Value::Number(number) => {
                let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
                whole.map(Self::Whole).or_else(|| number.as_f64().map(Self::Fraction))
            }
            _ => None,
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "JSON's whole numbers have at most 64 bits")]
    fn compare(&self, other: &Self) -> Option<Ordering> {
        let float = |number: &Self| match number {
            Self::Whole(whole) => *whole as f64,
            Self::Fraction(fraction) => *fraction,
        };
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(b)),
            (a, b) => float(a).partial_cmp(&float(b)),
        }
    }
}

/// `a == b`: `1 == 1.0 == True`, at any depth.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        (a, b) => match (Numeric::of(a), Numeric::of(b)) {
            (Some(a), Some(b)) => a.compare(&b) == Some(Ordering::Equal),
            _ => a == b,
        },
    }
}

/// How `a` and `b` are ordered; `None` where Python raises a `TypeError`.
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Array(a), Value::Array(b)) => match a.iter().zip(b).find(|(a, b)| !equal(a, b)) {
            Some((a, b)) => compare(a, b),
            None => Some(a.len().cmp(&b.len())),
        },
        (a, b) => Numeric::of(a)?.compare(&Numeric::of(b)?),
    }
}

/// `bool(value)`.
pub fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// The name of a value's type.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_as_python_writes_them() {
        for (value, shown) in [
            (json!({"a": [1, 2.0, null], "b": "it's"}), r#"{'a': [1, 2.0, None], 'b': "it's"}"#),
            (
                json!([1e16, 1.5e-5, 0.0001, 1e15, 123_456.75, 1e22, true]),
                "[1e+16, 1.5e-05, 0.0001, 1000000000000000.0, 123456.75, 1e+22, True]",
            ),
            (json!("a\n\t\\'\"\u{1}"), r#"'a\n\t\\\'"\x01'"#),
            (
                json!({"password": "x", "deep": [{"auth_token": 1}]}),
                "{'deep': [{'auth_token': '***'}], 'password': '***'}",
            ),
        ] {
            assert_eq!(repr(&value, true), shown);
        }
        assert_eq!(text(&json!("it's"), true), "it's");
    }
}
