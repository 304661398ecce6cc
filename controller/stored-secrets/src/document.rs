//! The secrets in one document.

use crate::key::{DecryptionError, MARK, RowKey};
use model::mask::{is_secret, mentions_secret};
use serde_json::{Map, Value};

/// Whether a document may contain an encrypted value; cheap.
pub fn has_mark(doc: &[u8]) -> bool {
    let mark = MARK.as_bytes();
    doc.windows(mark.len()).any(|window| window == mark)
}

/// A document with its secrets encrypted; `None` if it is no JSON, or has none.
pub fn sealed(key: &RowKey, doc: &[u8]) -> Result<Option<String>, DecryptionError> {
    // Most writes are of documents without one. Names are written without escapes, so a word in them can be seen.
    if !mentions_secret(doc) {
        return Ok(None);
    }
    changed(doc, &mut |value| {
        // The API shows whether these are set; they hold no secret (`model::mask`).
        if matches!(value, Value::Null | Value::Bool(_)) {
            return Ok(false);
        }
        *value = key.seal(value.to_string().as_bytes()).ok_or(DecryptionError)?.into();
        Ok(true)
    })
}

/// A document with its secrets as they were; `None` if it is no JSON, or has none.
pub fn opened(key: &RowKey, doc: &[u8]) -> Result<Option<String>, DecryptionError> {
    changed(doc, &mut |value| {
        let Some(text) = value.as_str() else { return Ok(false) };
        *value = serde_json::from_slice(&key.open(text)?).map_err(|_| DecryptionError)?;
        Ok(true)
    })
}

/// A document without its encrypted secrets, and their names; `None` if it is no JSON, or has none.
pub fn without_secrets(doc: &[u8]) -> Option<(String, Vec<String>)> {
    let mut document: Value = serde_json::from_slice(doc).ok()?;
    let mut names = Vec::new();
    remove(&mut document, &mut names);
    (!names.is_empty()).then(|| (document.to_string(), names))
}

fn changed(
    doc: &[u8],
    change: &mut impl FnMut(&mut Value) -> Result<bool, DecryptionError>,
) -> Result<Option<String>, DecryptionError> {
    // A document that cannot be read is stored and reported as it is: its reader names the row.
    let Ok(mut document) = serde_json::from_slice::<Value>(doc) else { return Ok(None) };
    let any = each_secret(&mut document, change)?;
    Ok(any.then(|| document.to_string()))
}

/// Change the value of every member whose name is that of a secret, at any depth; whether any was changed.
fn each_secret(
    value: &mut Value,
    change: &mut impl FnMut(&mut Value) -> Result<bool, DecryptionError>,
) -> Result<bool, DecryptionError> {
    let mut any = false;
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                any |= if is_secret(name) { change(member)? } else { each_secret(member, change)? };
            }
        }
        Value::Array(items) => {
            for item in items {
                any |= each_secret(item, change)?;
            }
        }
        _ => {}
    }
    Ok(any)
}

fn remove(value: &mut Value, names: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            let of_secret = |(name, member): (&String, &Value)| {
                let is_sealed = member.as_str().is_some_and(|text| text.starts_with(MARK));
                (is_secret(name) && is_sealed).then(|| name.clone())
            };
            let found: Vec<String> = Map::iter(members).filter_map(of_secret).collect();
            for name in found {
                members.remove(&name);
                names.push(name);
            }
            members.values_mut().for_each(|member| remove(member, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove(item, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DatabaseKey;
    use serde_json::json;

    fn key() -> RowKey {
        DatabaseKey::generate().unwrap().of_row("node", "a").unwrap()
    }

    #[test]
    fn every_secret_is_encrypted_and_comes_back() {
        let key = key();
        let doc = json!({
            "driver_info": {"redfish_password": "hunter2", "redfish_username": "u", "agent_secret_token": null},
            "instance_info": {"configdrive": {"user_data": "hunter2"}, "pin": 1.5},
            "list": [{"snmp_community": 1_000_000_007_u64}, {"secret": true}],
            "extra": {"note": "sealed:v1:xyz", "password": "sealed:v1:xyz"},
        });
        let text = doc.to_string();
        let sealed = sealed(&key, text.as_bytes()).unwrap().unwrap();
        assert!(!sealed.contains("hunter2") && !sealed.contains("1000000007"), "{sealed}");
        assert!(has_mark(sealed.as_bytes()) && sealed.contains(r#""secret":true"#), "{sealed}");
        let opened = opened(&key, sealed.as_bytes()).unwrap().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&opened).unwrap(), doc);
    }

    #[test]
    fn without_secrets_nothing_is_changed() {
        let key = key();
        for doc in [r#"{"driver_info": {"redfish_username": "u", "password": null}}"#, "{", ""] {
            assert_eq!(sealed(&key, doc.as_bytes()), Ok(None));
            assert_eq!(opened(&key, doc.as_bytes()), Ok(None));
            assert_eq!(without_secrets(doc.as_bytes()), None);
        }
    }

    #[test]
    fn forgotten_secrets_are_named() {
        let key = key();
        let doc =
            json!({"driver_info": {"ipmi_password": "p", "ipmi_address": "a"}, "token": "t"}).to_string();
        let sealed = sealed(&key, doc.as_bytes()).unwrap().unwrap();
        let (rest, names) = without_secrets(sealed.as_bytes()).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&rest).unwrap(),
            json!({"driver_info": {"ipmi_address": "a"}})
        );
        assert_eq!(names, ["token", "ipmi_password"]);
    }

    #[test]
    fn a_value_of_another_key_is_an_error() {
        let sealed = sealed(&key(), br#"{"password": "p"}"#).unwrap().unwrap();
        assert_eq!(opened(&key(), sealed.as_bytes()), Err(DecryptionError));
    }
}
