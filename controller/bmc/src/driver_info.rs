//! Typed reading of `driver_info`: every fault is collected, so that one answer names them all.

use serde_json::{Map, Value};

use crate::{BmcError, ErrorKind};

/// Reads keys of one node's `driver_info` and remembers what was wrong.
pub(crate) struct Reader<'a> {
    driver: &'static str,
    info: &'a Map<String, Value>,
    missing: Vec<&'static str>,
    invalid: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(driver: &'static str, info: &'a Map<String, Value>) -> Self {
        Self { driver, info, missing: Vec::new(), invalid: Vec::new() }
    }

    /// A value that is present and not null.
    pub(crate) fn value(&self, key: &str) -> Option<&'a Value> {
        self.info.get(key).filter(|value| !value.is_null())
    }

    /// A non-empty string without control characters.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<String> {
        match self.value(key)? {
            Value::String(text) if text.chars().any(char::is_control) => {
                self.invalid(key, "contains control characters")
            }
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::String(_) => None,
            _ => self.invalid(key, "must be a string"),
        }
    }

    /// As [`Reader::text`], and noted as missing when absent or empty.
    pub(crate) fn required(&mut self, key: &'static str) -> String {
        let text = self.text(key);
        if text.is_none() && !self.invalid.iter().any(|fault| fault.starts_with(key)) {
            self.missing.push(key);
        }
        text.unwrap_or_default()
    }

    /// A whole number, also when written as a string (Ironic's clients send either).
    pub(crate) fn number(&mut self, key: &'static str, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
        let value = self.value(key)?;
        let number = value.as_u64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()));
        match number {
            Some(number) if range.contains(&number) => Some(number),
            _ => self
                .invalid(key, &format!("must be a whole number from {} to {}", range.start(), range.end())),
        }
    }

    /// Note that `key` is wrong; `why` must not repeat a secret. Returns `None` for use in a tail.
    pub(crate) fn invalid<T>(&mut self, key: &str, why: &str) -> Option<T> {
        self.invalid.push(format!("{key} {why}"));
        None
    }

    /// `value` when nothing was missing or invalid.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, BmcError> {
        if self.missing.is_empty() && self.invalid.is_empty() {
            return Ok(value);
        }
        let mut faults = Vec::new();
        if !self.missing.is_empty() {
            faults.push(format!("missing {}", self.missing.join(", ")));
        }
        faults.extend(self.invalid);
        let message = format!("driver_info is not valid for driver {}: {}", self.driver, faults.join("; "));
        Err(BmcError::new(ErrorKind::Config, "", "read driver_info", message))
    }
}
