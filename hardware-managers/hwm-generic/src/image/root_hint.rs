//! Ironic's root device hints: what an operator says of the disk that gets the operating system. Pure.
//!
//! The operators are those of Ironic 39 (`specs_matcher`). What is different there is so on purpose
//! (docs/decisions/0035-root-device.md): a size is compared in whole GiB, `<or>` and `<all-in>` work on everything, and a
//! value that a disk does not have fulfils no condition but an inequality.

use block::Disk;
use serde_json::{Map, Value};

/// What a hint is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Model,
    Vendor,
    Serial,
    Size,
    Wwn,
    WwnWithExtension,
    WwnVendorExtension,
    Rotational,
    Name,
    Hctl,
    Tran,
}

const KEYS: [(&str, Key); 11] = [
    ("model", Key::Model),
    ("vendor", Key::Vendor),
    ("serial", Key::Serial),
    ("size", Key::Size),
    ("wwn", Key::Wwn),
    ("wwn_with_extension", Key::WwnWithExtension),
    ("wwn_vendor_extension", Key::WwnVendorExtension),
    ("rotational", Key::Rotational),
    ("name", Key::Name),
    ("hctl", Key::Hctl),
    ("tran", Key::Tran),
];

/// How a value is compared.
#[derive(Debug, Clone, PartialEq)]
enum Condition {
    /// `==`, `!=`, `<`, `<=`, `>`, `>=`; `=` is at least.
    Number(&'static str, f64),
    /// `s==`, `s!=`, `s<`, `s<=`, `s>`, `s>=`.
    Text(&'static str, String),
    /// `<in>`, `<all-in>`: contains all of them.
    Contains(Vec<String>),
    /// `<or>`: is one of them.
    OneOf(Vec<String>),
    Truth(bool),
}

/// One condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hint {
    key: Key,
    text: String,
    condition: Condition,
}

const NUMBERS: [&str; 7] = ["==", "!=", "<=", ">=", "<", ">", "="];
const TEXTS: [&str; 6] = ["s==", "s!=", "s<=", "s>=", "s<", "s>"];

/// The conditions of a `root_device` object.
///
/// # Errors
/// What is not understood: it is not guessed which disk is meant.
pub(super) fn parse(hints: &Map<String, Value>) -> Result<Vec<Hint>, String> {
    let mut all = Vec::new();
    for (name, value) in hints {
        let key = KEYS.iter().find(|(known, _)| known == name).map(|(_, key)| *key);
        let key = key.ok_or_else(|| match name.as_str() {
            "by_path" => "the hint \"by_path\" is not supported: the ramdisk has no such names; use hctl, serial or wwn"
                .to_owned(),
            _ => format!("the hint {name:?} is not known"),
        })?;
        let text = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Err(format!("the hint {name:?} is neither text nor a number")),
        };
        let condition = condition(key, &text);
        let condition = condition.ok_or_else(|| format!("the hint {name} {text:?} is not understood"))?;
        all.push(Hint { key, text: format!("{name} {text}"), condition });
    }
    Ok(all)
}

fn condition(key: Key, text: &str) -> Option<Condition> {
    let parts = |text: &str, word: &str| -> Vec<String> {
        text.split(word).map(|part| part.trim().to_lowercase()).filter(|part| !part.is_empty()).collect()
    };
    let operator = |words: &[&'static str]| {
        let found = words.iter().find_map(|word| Some((*word, text.strip_prefix(word)?.trim())));
        found.map(|(word, rest)| (word, rest.to_lowercase()))
    };
    let some = |parts: Vec<String>| (!parts.is_empty()).then_some(parts);
    if text.starts_with("<or>") {
        return some(parts(text, "<or>")).map(Condition::OneOf);
    }
    if let Some(rest) = text.strip_prefix("<all-in>") {
        return some(parts(rest, " ")).map(Condition::Contains);
    }
    if let Some(rest) = text.strip_prefix("<in>") {
        return (!rest.trim().is_empty()).then(|| Condition::Contains(vec![rest.trim().to_lowercase()]));
    }
    if let Some((word, rest)) = operator(&TEXTS) {
        return Some(Condition::Text(word, rest));
    }
    match key {
        Key::Rotational => match text.to_lowercase().as_str() {
            "true" | "1" | "yes" | "on" | "t" | "y" => Some(Condition::Truth(true)),
            "false" | "0" | "no" | "off" | "f" | "n" => Some(Condition::Truth(false)),
            _ => None,
        },
        Key::Size => {
            let (word, number) = operator(&NUMBERS).unwrap_or(("==", text.to_owned()));
            let number = number.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)?;
            Some(Condition::Number(word, number))
        }
        // Ironic's agent fails on these for text; what is meant is clear.
        _ => match operator(&["==", "!=", "="]) {
            Some(("!=", rest)) => Some(Condition::Text("s!=", rest)),
            Some((_, rest)) => Some(Condition::Text("s==", rest)),
            None => Some(Condition::Text("s==", text.to_lowercase())),
        },
    }
}

impl Hint {
    /// Why `disk` is not meant; `None` when it may be.
    pub(super) fn mismatch(&self, disk: &Disk) -> Option<String> {
        let value = self.value(disk);
        let fits = match (&self.condition, &value) {
            (Condition::Truth(wanted), _) => disk.rotational == *wanted,
            (Condition::Number("!=", _) | Condition::Text("s!=", _), None) => true,
            (_, None) => false,
            (Condition::Number(word, wanted), Some(value)) => {
                value.parse::<f64>().is_ok_and(|value| holds(word, value.partial_cmp(wanted)))
            }
            (Condition::Text(word, wanted), Some(value)) => holds(&word[1..], Some(value.cmp(wanted))),
            (Condition::Contains(all), Some(value)) => all.iter().all(|one| value.contains(one)),
            (Condition::OneOf(all), Some(value)) => {
                all.iter().any(|one| one == value || same_number(one, value))
            }
        };
        (!fits).then(|| match value {
            Some(value) => format!("{} (it has {value:?})", self.text),
            None => format!("{} (it has none)", self.text),
        })
    }

    /// In lower case.
    fn value(&self, disk: &Disk) -> Option<String> {
        let value = match self.key {
            Key::Model => disk.model.clone(),
            Key::Vendor => disk.vendor.clone(),
            Key::Serial => disk.serial.clone(),
            Key::Size => Some((disk.size >> 30).to_string()),
            Key::Wwn => disk.wwn.clone(),
            Key::WwnWithExtension => disk.wwn_with_extension.clone(),
            Key::WwnVendorExtension => disk.wwn_vendor_extension.clone(),
            Key::Rotational => Some(disk.rotational.to_string()),
            Key::Name => Some(disk.path.to_string_lossy().into_owned()),
            Key::Hctl => disk.hctl.clone(),
            Key::Tran => disk.transport.clone(),
        };
        value.map(|value| value.trim().to_lowercase())
    }
}

fn same_number(a: &str, b: &str) -> bool {
    matches!((a.parse::<u64>(), b.parse::<u64>()), (Ok(a), Ok(b)) if a == b)
}

fn holds(word: &str, order: Option<std::cmp::Ordering>) -> bool {
    order.is_some_and(|order| match word {
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    })
}
