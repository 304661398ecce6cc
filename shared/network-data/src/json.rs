//! Members of JSON objects.

use serde_json::Value;

/// The members of a list; none where there is no list.
pub(super) fn list<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    of[name].as_array().into_iter().flatten()
}

/// A text, which has to be there.
pub(super) fn text<'a>(of: &'a Value, name: &str) -> Result<&'a str, String> {
    of[name].as_str().ok_or_else(|| format!("'{name}' is missing"))
}
