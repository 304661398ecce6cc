//! The arguments of an operation, as it is called with them.

use crate::scope::Scope;
use crate::signature::{OperationError, Signature, named};
use serde_json::{Map, Value};

/// Arguments by name, templates filled in.
pub struct Args(Map<String, Value>);

impl Args {
    /// The arguments of `operation`, a condition or an action.
    pub fn of(signature: &Signature, operation: &Value, scope: &Scope) -> Result<Self, OperationError> {
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
    pub fn text(&self, name: &str) -> Result<&str, OperationError> {
        self.get(name).as_str().ok_or_else(|| OperationError(format!("{name} is not a text")))
    }

    /// Whether it was given.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}
