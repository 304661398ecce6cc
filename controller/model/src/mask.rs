//! Masks secrets: the value of every key whose name contains a word for a secret.

use aho_corasick::AhoCorasick;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// What is shown in its place: Ironic's six stars.
pub const MASKED: &str = "******";

/// A key that contains one of these words holds a secret (oslo.utils' list, as far as it concerns servers,
/// SNMP's keys, and the PSIDs of drives).
const SECRET: [&str; 21] = [
    "password",
    "adminpass",
    "admin_pass",
    "auth_token",
    "new_pass",
    "secret",
    "sys_pswd",
    "token",
    "configdrive",
    "encrypted_key",
    "private_key",
    "fernetkey",
    "sslkey",
    "passphrase",
    "credential",
    "snmp_auth_key",
    "snmp_priv_key",
    "hmac_key",
    "community",
    "kg_key",
    "psid",
];

/// Finds them in one pass, in any case: each write of a node looks at every key.
static WORDS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(SECRET).ok());

/// Whether a key holds a secret.
pub fn is_secret(key: &str) -> bool {
    mentions_secret(key.as_bytes())
}

/// Whether a text contains a word for a secret: without one, no key in it holds a secret.
pub fn mentions_secret(text: &[u8]) -> bool {
    WORDS.as_ref().is_none_or(|words| words.is_match(text))
}

/// A copy with every secret masked, at any depth.
pub fn masked(fields: &Map<String, Value>) -> Map<String, Value> {
    fields
        .iter()
        .map(|(key, value)| {
            let value = match value {
                Value::Null => Value::Null,
                // Ironic lets a client see that these are required; they hold no secret themselves.
                Value::Bool(_) => value.clone(),
                _ if is_secret(key) => Value::String(MASKED.to_owned()),
                other => masked_value(other),
            };
            (key.clone(), value)
        })
        .collect()
}

/// As [`masked`], for any value.
pub fn masked_value(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(masked(fields)),
        Value::Array(items) => Value::Array(items.iter().map(masked_value).collect()),
        other => other.clone(),
    }
}

/// `instance_info` as clients see it: Ironic also hides the image's temporary URL.
pub fn masked_instance_info(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut fields = masked(fields);
    if let Some(url) = fields.get_mut("image_url").filter(|url| !url.is_null()) {
        *url = Value::String(MASKED.to_owned());
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_by_a_word_in_it_in_any_case() {
        for key in ["password", "redfish_Password", "X-Auth-Token", "sys_pswd", "agent_opal_psids"] {
            assert!(is_secret(key) && mentions_secret(format!("{{\"{key}\": 1}}").as_bytes()), "{key}");
        }
        for key in ["", "redfish_username", "pass", "step"] {
            assert!(!is_secret(key), "{key}");
        }
    }

    #[test]
    fn secrets_are_masked_at_any_depth() {
        let value = serde_json::json!({
            "redfish_password": "p", "redfish_username": "u", "agent_secret_token": "t",
            "agent_opal_psids": {"S1": "P"},
            "deep": {"list": [{"ipmi_password": {"x": 1}}]}, "agent_secret_token_pregenerated": true,
        });
        let shown = Value::Object(masked(value.as_object().unwrap()));
        assert_eq!(
            shown,
            serde_json::json!({
                "redfish_password": "******", "redfish_username": "u", "agent_secret_token": "******",
                "agent_opal_psids": "******",
                "deep": {"list": [{"ipmi_password": "******"}]}, "agent_secret_token_pregenerated": true,
            })
        );
    }
}
