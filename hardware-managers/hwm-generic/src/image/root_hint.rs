//! The `root_device` object of a deployment: what an operator says of the disk that gets the operating system. Pure.

use block::Hint;
use serde_json::{Map, Value};

/// The conditions of a `root_device` object; `None` when it has none.
///
/// # Errors
/// What is not understood: it is not guessed which disk is meant.
pub(super) fn parse(hints: &Map<String, Value>) -> Result<Option<Hint>, String> {
    if hints.is_empty() {
        return Ok(None);
    }
    let pairs: Result<Vec<(&str, String)>, String> =
        hints.iter().map(|(name, value)| pair(name, value)).collect();
    Hint::parse(pairs?).map(Some)
}

fn pair<'a>(name: &'a str, value: &Value) -> Result<(&'a str, String), String> {
    match (name, value) {
        ("by_path", _) => Err(
            "the hint \"by_path\" is not supported: the ramdisk has no such names; use hctl, serial or wwn"
                .to_owned(),
        ),
        ("volume_name", _) => Err("the hint \"volume_name\" is only for disks to keep".to_owned()),
        (_, Value::String(text)) => Ok((name, text.trim().to_owned())),
        (_, Value::Number(_) | Value::Bool(_)) => Ok((name, value.to_string())),
        _ => Err(format!("the hint {name:?} is neither text nor a number")),
    }
}
