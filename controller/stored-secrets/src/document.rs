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

/// A document with its secrets as they were; `None` if it is no JSON, or has none. The document is as [`sealed`] writes it,
/// without spaces: what is not encrypted is copied without being parsed, since each read of a row comes here.
pub fn opened(key: &RowKey, doc: &[u8]) -> Result<Option<String>, DecryptionError> {
    // A document that cannot be read is reported as it is: its reader names the row.
    let Ok(mut rest) = std::str::from_utf8(doc) else { return Ok(None) };
    // Within a text the quote would have a backslash before it: this is where the value of a member begins.
    let begin = format!(":\"{MARK}");
    let (mut text, mut any) = (String::with_capacity(doc.len()), false);
    while let Some(at) = rest.find(&begin) {
        let (name, value) = rest.split_at(at);
        let Some(length) = value[2..].find('"') else { break };
        text.push_str(name);
        let (value, after) = value.split_at(length + 3);
        if name_at_end(name).is_some_and(|name| is_secret(&name)) {
            let plain: Value =
                serde_json::from_slice(&key.open(&value[2..length + 2])?).map_err(|_| DecryptionError)?;
            (text, any) = (text + ":" + &plain.to_string(), true);
        } else {
            text.push_str(value);
        }
        rest = after;
    }
    text.push_str(rest);
    Ok(any.then_some(text))
}

/// The name of a member, from the document up to its colon.
fn name_at_end(doc: &str) -> Option<String> {
    let doc = doc.strip_suffix('"')?;
    let escaped = |at: usize| doc[..at].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
    let (begin, _) = doc.rmatch_indices('"').find(|(at, _)| !escaped(*at))?;
    serde_json::from_str(&format!("\"{}\"", &doc[begin + 1..])).ok()
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
    fn names_with_quotes_and_texts_that_look_like_values_are_distinguished() {
        let key = key();
        let doc = json!({
            "a \"quoted\" password": "hunter2",
            "back\\": {"slash\\\\password": "hunter2"},
            "note": ":\"sealed:v1:xyz\"",
            "list": ["sealed:v1:xyz", {"token": {"a": ["b"]}}],
        });
        let sealed = sealed(&key, doc.to_string().as_bytes()).unwrap().unwrap();
        assert!(!sealed.contains("hunter2"), "{sealed}");
        let opened = opened(&key, sealed.as_bytes()).unwrap().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&opened).unwrap(), doc);
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
