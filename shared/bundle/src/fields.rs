//! Reading a JSON object field by field, so that errors name the field.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("manifest: {field}: {problem}")]
pub struct FieldError {
    /// Its path, `grants.devices[0].kind`.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

/// An object on its way to be read.
pub(crate) struct Fields {
    path: String,
    fields: Map<String, Value>,
}

impl Fields {
    /// The object `value`, found at `path` (empty: the whole).
    pub fn of(path: &str, value: Value) -> Result<Self, FieldError> {
        match value {
            Value::Object(fields) => Ok(Self { path: path.to_owned(), fields }),
            _ => Err(error(if path.is_empty() { "(whole)" } else { path }, "is not an object")),
        }
    }

    /// The full name of a field.
    pub fn name(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// A field of this type, or nothing.
    pub fn optional<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>, FieldError> {
        match self.fields.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => serde_json::from_value(value)
                .map(Some)
                .map_err(|problem| error(self.name(key), problem.to_string())),
        }
    }

    /// A field that has to be there.
    pub fn required<T: DeserializeOwned>(&mut self, key: &str) -> Result<T, FieldError> {
        self.optional(key)?.ok_or_else(|| error(self.name(key), "is missing"))
    }

    /// A whole number within bounds, or the default.
    pub fn bounded(
        &mut self,
        key: &str,
        bounds: std::ops::RangeInclusive<u32>,
        default: u32,
    ) -> Result<u32, FieldError> {
        let number = self.optional(key)?.unwrap_or(default);
        if bounds.contains(&number) {
            return Ok(number);
        }
        let problem = format!("{number} is not within {} and {}", bounds.start(), bounds.end());
        Err(error(self.name(key), problem))
    }

    /// The names that were not read.
    #[cfg(feature = "build")]
    pub fn left(&self) -> Vec<String> {
        self.fields.keys().map(|key| self.name(key)).collect()
    }
}

pub(crate) fn error(field: impl Into<String>, problem: impl Into<String>) -> FieldError {
    FieldError { field: field.into(), problem: problem.into() }
}
