//! Values on the command line: `key=value`, secrets that must not stand there, steps, MAC addresses.

use crate::failure::Failure;
use serde_json::{Map, Value};
use std::io::{BufRead, IsTerminal, Read};
use std::path::Path;

/// `key=value` as it stands on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Before the first `=`.
    pub key: String,
    /// After it.
    pub value: String,
}

/// Reads `key=value`.
pub fn pair(text: &str) -> Result<Pair, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok(Pair { key: key.to_owned(), value: value.to_owned() }),
        _ => Err("write key=value".to_owned()),
    }
}

/// JSON where the text is JSON (`8192`, `true`, `{"a": 1}`), otherwise the text itself, as Ironic's client does.
fn typed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Whether the value of `key` is a secret: always text, also if it looks like a number.
fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["password", "secret", "token", "private_key"].iter().any(|word| key.contains(word))
}

/// The pairs as a JSON object. A key given twice is an error.
pub fn object(option: &str, pairs: &[Pair]) -> Result<Map<String, Value>, Failure> {
    let mut map = Map::new();
    for Pair { key, value } in pairs {
        let value = if is_secret(key) { Value::String(value.clone()) } else { typed(value) };
        if map.insert(key.clone(), value).is_some() {
            return Err(Failure::Usage(format!("{option} {key} is given twice")));
        }
    }
    Ok(map)
}

/// The pairs as a JSON object whose values are all text.
pub fn text_object(option: &str, pairs: &[Pair]) -> Result<Map<String, Value>, Failure> {
    let mut texts = object(option, pairs)?;
    for Pair { key, value } in pairs {
        texts.insert(key.clone(), value.as_str().into());
    }
    Ok(texts)
}

/// The pairs as a JSON object, with `@FILE` read from the file, `-` asked for, and `@@…` meaning `@…`.
pub fn secret_object(option: &str, pairs: &[Pair]) -> Result<Map<String, Value>, Failure> {
    let read: Result<Vec<_>, Failure> = pairs
        .iter()
        .map(|pair| Ok(Pair { key: pair.key.clone(), value: indirect(&pair.key, &pair.value)? }))
        .collect();
    object(option, &read?)
}

/// A value that may be kept out of the command line: `@FILE` is the content of the file without its last
/// newline, `-` is asked for (a line of standard input where that is no terminal), `@@x` is `@x`.
pub fn indirect(name: &str, value: &str) -> Result<String, Failure> {
    let unusable = |error: std::io::Error| Failure::Usage(format!("{name}={value}: {error}"));
    match value.strip_prefix('@') {
        Some(literal) if literal.starts_with('@') => Ok(literal.to_owned()),
        Some(path) => {
            let text = std::fs::read_to_string(Path::new(path)).map_err(unusable)?;
            Ok(without_newline(&text).to_owned())
        }
        None if value == "-" => ask(name).map_err(unusable),
        None => Ok(value.to_owned()),
    }
}

fn ask(name: &str) -> std::io::Result<String> {
    if std::io::stdin().is_terminal() {
        eprint!("{name}: ");
        return console::Term::stderr().read_secure_line();
    }
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line)? == 0 {
        return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "standard input is empty"));
    }
    Ok(without_newline(&line).to_owned())
}

fn without_newline(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// JSON as it stands there, from a file, or from standard input (`-`).
fn json(option: &str, source: &str) -> Result<Value, Failure> {
    let usage = |reason: String| Failure::Usage(format!("{option}: {reason}"));
    let trimmed = source.trim_start();
    let text = if trimmed.starts_with(['[', '{']) {
        source.to_owned()
    } else if source == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|error| usage(error.to_string()))?;
        text
    } else {
        std::fs::read_to_string(source).map_err(|error| usage(format!("{source}: {error}")))?
    };
    serde_json::from_str(&text).map_err(|error| usage(format!("not JSON: {error}")))
}

/// A JSON object, from where [`json`] reads.
pub fn json_object(option: &str, source: &str) -> Result<Value, Failure> {
    let value = json(option, source)?;
    if value.is_object() {
        return Ok(value);
    }
    Err(Failure::Usage(format!("{option}: a JSON object is wanted")))
}

/// A JSON list, from where [`json`] reads.
pub fn json_list(option: &str, source: &str) -> Result<Value, Failure> {
    let value = json(option, source)?;
    if value.is_array() {
        return Ok(value);
    }
    Err(Failure::Usage(format!("{option}: a JSON list is wanted")))
}

/// A RAID configuration, from where [`json`] reads: `{"logical_disks": […]}`.
pub fn raid(option: &str, source: &str) -> Result<Value, Failure> {
    let raid = json(option, source)?;
    if raid.get("logical_disks").is_some_and(Value::is_array) {
        return Ok(raid);
    }
    Err(Failure::Usage(format!("{option}: a JSON object with a list \"logical_disks\" is wanted")))
}

/// Steps, from where [`json`] reads: a list of objects with `interface` and `step`.
pub fn steps(option: &str, source: &str) -> Result<Value, Failure> {
    let usage = |reason: String| Failure::Usage(format!("{option}: {reason}"));
    let steps = json(option, source)?;
    let list = steps.as_array().ok_or_else(|| usage("a JSON list of steps is wanted".to_owned()))?;
    if list.is_empty() {
        return Err(usage("the list of steps is empty".to_owned()));
    }
    for (index, step) in list.iter().enumerate() {
        for key in ["interface", "step"] {
            if !step.get(key).is_some_and(Value::is_string) {
                return Err(usage(format!("step {} has no {key:?}: {step}", index + 1)));
            }
        }
    }
    Ok(steps)
}

/// A MAC address, canonical: lower case with colons.
pub fn mac(text: &str) -> Result<String, String> {
    let parsed = text.parse::<mac::Mac>();
    parsed
        .map(|mac| mac.to_string())
        .map_err(|_| "a MAC address has six octets, for example 52:54:00:12:34:56".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pairs(texts: &[&str]) -> Vec<Pair> {
        texts.iter().map(|text| pair(text).unwrap()).collect()
    }

    #[test]
    fn values_are_typed_and_secrets_are_text() {
        let map = secret_object(
            "--driver-info",
            &pairs(&["ipmi_port=6230", "redfish_password=0123", "a=b=c", "v=false"]),
        )
        .unwrap();
        assert_eq!(
            Value::Object(map),
            json!({"ipmi_port": 6230, "redfish_password": "0123", "a": "b=c", "v": false})
        );
        assert!(pair("novalue").is_err());
        assert!(pair("=x").is_err());
        let texts = text_object("--local-link", &pairs(&["port_id=1", "switch_id=a"])).unwrap();
        assert_eq!(Value::Object(texts), json!({"port_id": "1", "switch_id": "a"}));
        assert!(json_list("--actions", "{}").is_err() && json_list("--actions", "[]").is_ok());
        let twice = object("--extra", &pairs(&["a=1", "a=2"])).unwrap_err();
        assert_eq!(twice.to_string(), "--extra a is given twice");
    }

    #[test]
    fn secrets_come_from_files() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "12 34\n").unwrap();
        let given =
            pairs(&[&format!("redfish_password=@{}", file.path().display()), "redfish_username=@@me"]);
        let map = secret_object("--driver-info", &given).unwrap();
        assert_eq!(Value::Object(map), json!({"redfish_password": "12 34", "redfish_username": "@me"}));
        let missing =
            secret_object("--driver-info", &pairs(&["ipmi_password=@/nonexistent/file"])).unwrap_err();
        assert!(missing.to_string().starts_with("ipmi_password=@/nonexistent/file: "), "{missing}");
    }

    #[test]
    fn steps_are_checked_before_anything_is_sent() {
        let good = r#"[{"interface": "deploy", "step": "erase_devices", "args": {}}]"#;
        assert_eq!(steps("--clean-steps", good).unwrap()[0]["step"], "erase_devices");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), good).unwrap();
        assert!(steps("--clean-steps", file.path().to_str().unwrap()).is_ok());
        for (bad, word) in [
            ("[]", "empty"),
            (r#"{"step": "x"}"#, "list"),
            (r#"[{"step": "x"}]"#, "\"interface\""),
            (r#"[{"interface": "deploy"}]"#, "\"step\""),
            ("[", "not JSON"),
            ("/nonexistent", "/nonexistent"),
        ] {
            let error = steps("--clean-steps", bad).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(word), "{bad}: {error}");
        }
    }

    #[test]
    fn macs() {
        assert_eq!(mac("52-54-00-AA-BB-01").unwrap(), "52:54:00:aa:bb:01");
        for bad in ["", "52:54:00:aa:bb", "52:54:00:aa:bb:zz", "5:254:00:aa:bb:01"] {
            assert!(mac(bad).is_err(), "{bad}");
        }
    }
}
