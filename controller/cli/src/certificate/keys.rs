//! The keys that certificates are verified with.

use super::offline::{read, refused, wrong};
use crate::failure::Failure;
use certificate::{PublicKey, SignedKeyChange, keys_from};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// What a controller says of its key.
#[derive(Deserialize)]
struct Keys {
    key: String,
    #[serde(default)]
    changes: Vec<SignedKeyChange>,
}

fn parsed(text: &str) -> Result<PublicKey, Failure> {
    text.trim().parse().map_err(|error| Failure::Usage(format!("the key: {error}")))
}

/// The key of `--key`, and those that `--key-changes` leads to from it.
pub fn trusted(key: &str, changes: Option<&Path>) -> Result<Vec<PublicKey>, Failure> {
    let text = if key.starts_with("ed25519:") { key.to_owned() } else { read(Path::new(key))? };
    let key = match serde_json::from_str::<Keys>(&text) {
        Ok(of_controller) => parsed(&of_controller.key)?,
        Err(_) => parsed(&text)?,
    };
    let changes = match changes {
        None => Vec::new(),
        Some(path) => {
            let keys: Keys = serde_json::from_str(&read(path)?).map_err(|error| wrong(path, error))?;
            keys.changes
        }
    };
    keys_from(key, &changes).map_err(|error| refused(&error))
}

/// The keys of the controller that was asked.
pub fn of_controller(answer: Value) -> Result<Vec<PublicKey>, Failure> {
    let keys: Keys = serde_json::from_value(answer)
        .map_err(|error| Failure::Usage(format!("the controller's key: {error}")))?;
    keys_from(parsed(&keys.key)?, &keys.changes).map_err(|error| refused(&error))
}

/// A key with its id.
pub fn line(key: &str) -> String {
    match key.parse::<PublicKey>() {
        Ok(found) => format!("{key} # id {}", found.id()),
        Err(_) => key.to_owned(),
    }
}
