//! Arguments of a query, typed, with Ironic's words for what is wrong.

use crate::error::ApiError;
use uuid::Uuid;

/// The query of a request.
#[derive(Debug, Clone, Default)]
pub struct Args(Vec<(String, String)>);

impl Args {
    /// From decoded pairs.
    pub fn new(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }

    /// The pairs as they came.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// 400 that names every argument that is not one of `known`, and every one that is given twice.
    pub fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        let unknown: Vec<_> =
            self.0.iter().map(|(name, _)| name.as_str()).filter(|name| !known.contains(name)).collect();
        if !unknown.is_empty() {
            return Err(ApiError::invalid(format!("Unexpected arguments: {}", unknown.join(", "))));
        }
        for (index, (name, _)) in self.0.iter().enumerate() {
            if self.0[..index].iter().any(|(earlier, _)| earlier == name) {
                return Err(ApiError::invalid(format!("Expected one value for {name}, not several")));
            }
        }
        Ok(())
    }

    /// The text of an argument.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The node that `/v1/nodes/validate` is asked about.
    pub fn node(&self) -> Option<&str> {
        self.text("node_uuid").or(self.text("node"))
    }

    /// A UUID in any of its spellings.
    pub fn uuid(&self, name: &str) -> Result<Option<Uuid>, ApiError> {
        self.text(name).map(|text| as_uuid(name, text)).transpose()
    }

    /// A whole number.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        self.text(name)
            .map(|text| {
                text.trim()
                    .parse()
                    .map_err(|_| ApiError::invalid(format!("Expected an integer for {name}: {text}")))
            })
            .transpose()
    }

    /// A boolean in any of the spellings that OpenStack knows.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError> {
        self.text(name).map(|text| as_boolean(name, text)).transpose()
    }

    /// A comma-separated list: trimmed, lower case, without repetitions.
    pub fn list(&self, name: &str) -> Option<Vec<String>> {
        let mut items: Vec<String> = Vec::new();
        for item in self.text(name)?.split(',').map(|item| item.trim().to_lowercase()) {
            if !item.is_empty() && !items.contains(&item) {
                items.push(item);
            }
        }
        Some(items)
    }
}

/// A UUID in any of its spellings.
pub fn as_uuid(name: &str, text: &str) -> Result<Uuid, ApiError> {
    Uuid::parse_str(text).map_err(|_| ApiError::invalid(format!("Expected UUID for {name}: {text}")))
}

/// The spellings of a boolean that OpenStack knows: first those of true, then as many of false.
pub const BOOLEANS: [&str; 12] = ["1", "t", "true", "on", "y", "yes", "0", "f", "false", "off", "n", "no"];

/// A boolean in any of the spellings that OpenStack knows.
pub fn as_boolean(name: &str, text: &str) -> Result<bool, ApiError> {
    let given = text.trim().to_ascii_lowercase();
    match BOOLEANS.iter().position(|word| *word == given) {
        Some(at) => Ok(at < BOOLEANS.len() / 2),
        None => Err(ApiError::invalid(format!(
            "Invalid {name}: Unrecognized value '{text}', acceptable values are: '0', '1', 'f', 'false', 'n', \
             'no', 'off', 'on', 't', 'true', 'y', 'yes'"
        ))),
    }
}

/// Whether a text may be a logical name: RFC 3986 unreserved characters, at most 255 of them.
pub fn is_logical_name(text: &str) -> bool {
    (1..=255).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

/// Whether a text may be a name before 1.10: a host name, RFC 1123.
pub fn is_host_name(text: &str) -> bool {
    is_logical_name(text)
        && text.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(pairs: &[(&str, &str)]) -> Args {
        Args::new(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    #[test]
    fn types_and_their_errors() {
        let query = args(&[("a", "Yes"), ("b", "maybe"), ("c", " 12"), ("d", "x"), ("e", "B, a,b,,")]);
        assert_eq!(query.boolean("a").unwrap(), Some(true));
        assert!(query.boolean("b").unwrap_err().message.starts_with("Invalid b: Unrecognized value 'maybe'"));
        assert_eq!(query.integer("c").unwrap(), Some(12));
        assert_eq!(query.integer("d").unwrap_err().message, "Expected an integer for d: x");
        assert_eq!(query.uuid("d").unwrap_err().message, "Expected UUID for d: x");
        assert_eq!(query.list("e").unwrap(), ["b", "a"]);
        assert_eq!(query.only(&["a", "b", "c"]).unwrap_err().message, "Unexpected arguments: d, e");
        assert!(args(&[("a", "1"), ("a", "2")]).only(&["a"]).is_err());
    }

    #[test]
    fn names() {
        assert!(is_logical_name("node-1.rack_2~x") && !is_logical_name("bad name!") && !is_logical_name(""));
        assert!(is_host_name("node-1.rack") && !is_host_name("node_1") && !is_host_name("-x"));
    }
}
