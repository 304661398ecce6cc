//! The form of an operation of a rule: its name, the names of its arguments, its loop.

use serde_json::{Map, Value};

/// Why an operation failed: one sentence without the rule's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationError(pub String);

/// What an operation is called with.
#[derive(Debug, Clone, Copy)]
pub struct Signature {
    /// Its name: `set-attribute`, `eq`.
    pub op: &'static str,
    /// Arguments that it needs, in the order in which a list of them is read.
    pub needs: &'static [&'static str],
    /// Optional arguments.
    pub takes: &'static [&'static str],
    /// Arguments whose templates are filled in also outside of a loop.
    pub filled: &'static [&'static str],
}

/// Arguments by name, or what is wrong with them in Ironic's words.
pub fn named(signature: &Signature, args: &Value) -> Result<Map<String, Value>, OperationError> {
    let Signature { needs, takes, .. } = signature;
    match args {
        Value::Object(args) => {
            let list = |names: Vec<&str>| names.join(", ");
            let missing: Vec<_> = needs.iter().filter(|need| !args.contains_key(**need)).copied().collect();
            if !missing.is_empty() {
                return Err(OperationError(format!("missing required argument(s): {}", list(missing))));
            }
            let known = |name: &&str| needs.contains(name) || takes.contains(name);
            let strange: Vec<_> = args.keys().map(String::as_str).filter(|name| !known(name)).collect();
            if !strange.is_empty() {
                return Err(OperationError(format!("unexpected argument(s): {}", list(strange))));
            }
            Ok(args.clone())
        }
        Value::Array(args) if args.len() < needs.len() => Err(OperationError(format!(
            "Not enough arguments provided. Missing: {}",
            needs[args.len()..].join(", ")
        ))),
        Value::Array(args) => {
            let names = needs.iter().chain(*takes);
            Ok(names.zip(args).map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
        }
        _ => Err(OperationError("args must be either a list or dictionary".to_owned())),
    }
}

/// The items of an operation's loop; none when it has no loop. A map is one item.
pub fn turns(operation: &Value) -> Option<Vec<&Value>> {
    match operation.get("loop") {
        Some(Value::Array(items)) if !items.is_empty() => Some(items.iter().collect()),
        Some(item @ Value::Object(fields)) if !fields.is_empty() => Some(vec![item]),
        _ => None,
    }
}
