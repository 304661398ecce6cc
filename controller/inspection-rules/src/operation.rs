//! One operation of a rule: its name, its arguments by name, its loop.

use crate::scope::Scope;
use serde_json::{Map, Value};

/// Why an operation did not work: one sentence without the rule's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why(pub String);

/// What an operation is called with.
#[derive(Debug, Clone, Copy)]
pub struct Signature {
    /// Its name: `set-attribute`, `eq`.
    pub op: &'static str,
    /// Arguments that it needs, in the order in which a list of them is read.
    pub needs: &'static [&'static str],
    /// Arguments that it takes besides.
    pub takes: &'static [&'static str],
    /// Arguments whose templates are filled in also outside of a loop.
    pub filled: &'static [&'static str],
}

/// Arguments by name, templates filled in.
pub struct Args(Map<String, Value>);

impl Args {
    /// The arguments of `operation`, a condition or an action.
    pub fn of(signature: &Signature, operation: &Value, scope: &Scope) -> Result<Self, Why> {
        let given = named(signature, operation.get("args").unwrap_or(&Value::Null))?;
        let mut args = Map::new();
        for (name, value) in given {
            let fills = scope.item.is_some() || signature.filled.contains(&name.as_str());
            args.insert(name, if fills { scope.fill(&value)? } else { value });
        }
        Ok(Self(args))
    }

    /// An argument; null when it was not given.
    pub fn get(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }

    /// The same, taken out.
    pub fn take(&mut self, name: &str) -> Value {
        self.0.remove(name).unwrap_or(Value::Null)
    }

    /// The text of an argument.
    pub fn text(&self, name: &str) -> Result<&str, Why> {
        self.get(name).as_str().ok_or_else(|| Why(format!("{name} is not a text")))
    }

    /// Whether it was given.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

/// Arguments by name, or what is wrong with them in Ironic's words.
pub fn named(signature: &Signature, args: &Value) -> Result<Map<String, Value>, Why> {
    let Signature { needs, takes, .. } = signature;
    match args {
        Value::Object(args) => {
            let list = |names: Vec<&str>| names.join(", ");
            let missing: Vec<_> = needs.iter().filter(|need| !args.contains_key(**need)).copied().collect();
            if !missing.is_empty() {
                return Err(Why(format!("missing required argument(s): {}", list(missing))));
            }
            let known = |name: &&str| needs.contains(name) || takes.contains(name);
            let strange: Vec<_> = args.keys().map(String::as_str).filter(|name| !known(name)).collect();
            if !strange.is_empty() {
                return Err(Why(format!("unexpected argument(s): {}", list(strange))));
            }
            Ok(args.clone())
        }
        Value::Array(args) if args.len() < needs.len() => {
            Err(Why(format!("Not enough arguments provided. Missing: {}", needs[args.len()..].join(", "))))
        }
        Value::Array(args) => {
            let names = needs.iter().chain(*takes);
            Ok(names.zip(args).map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
        }
        _ => Err(Why("args must be either a list or dictionary".to_owned())),
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
