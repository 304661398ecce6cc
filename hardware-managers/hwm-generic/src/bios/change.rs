//! Which settings are to be written. Pure: everything is judged before the first one is.

use super::attributes::{Attribute, Driver, Kind};
use serde_json::{Map, Value};

/// A setting with its new value.
#[derive(Debug)]
pub struct Change<'a> {
    /// The setting.
    pub attribute: &'a Attribute,
    /// Its value. In no message: it may be a secret.
    pub value: String,
    /// Whether it is another one than that it has.
    pub differs: bool,
}

/// The changes that `settings` requests, in its order.
///
/// # Errors
/// All problems with it. Each names its setting; none contains a requested value.
pub fn changes<'a>(drivers: &'a [Driver], settings: &Value) -> Result<Vec<Change<'a>>, String> {
    let mut wrong = Vec::new();
    let mut changes: Vec<Change> = Vec::new();
    for setting in settings.as_array().into_iter().flatten().filter_map(Value::as_object) {
        let name = setting.get("name").and_then(Value::as_str).unwrap_or_default();
        if changes.iter().any(|change| change.attribute.name == name) {
            wrong.push(format!("{name} is named more than once"));
            continue;
        }
        match change(drivers, name, setting) {
            Ok(change) => changes.push(change),
            Err(problem) => wrong.push(format!("{name} {problem}")),
        }
    }
    if wrong.is_empty() { Ok(changes) } else { Err(format!("nothing was written: {}", wrong.join("; "))) }
}

fn change<'a>(drivers: &'a [Driver], name: &str, setting: &Map<String, Value>) -> Result<Change<'a>, String> {
    let of = |driver: &'a Driver| {
        let found = driver.attributes.iter().find(|attribute| attribute.name == name);
        found.map(|attribute| (driver, attribute))
    };
    let found: Vec<_> = drivers.iter().filter_map(of).collect();
    let (driver, attribute) = match found[..] {
        [one] => one,
        [] => return Err("is no setting of this machine's firmware".into()),
        [(one, _), (other, _), ..] => {
            return Err(format!("is offered by both {} and {}", one.name, other.name));
        }
    };
    let value = match setting.get("value") {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => return Err("has no value".into()),
    };
    let differs = attribute.value.as_ref() != Some(&value);
    if differs {
        may_be_written(driver, attribute)?;
        fits(&attribute.kind, &value)?;
    }
    Ok(Change { attribute, value, differs })
}

fn may_be_written(driver: &Driver, attribute: &Attribute) -> Result<(), String> {
    if attribute.read_only {
        return Err("cannot be changed from here: the firmware offers it read-only".into());
    }
    match (&attribute.kind, &driver.locks[..]) {
        (Kind::Password, _) => Err("is a password, and passwords are not set from here".into()),
        (_, []) => Ok(()),
        (_, locks) => Err(format!(
            "is protected by the BIOS password {}; remove it, or change the setting through the BMC",
            locks.join(", ")
        )),
    }
}

fn fits(kind: &Kind, value: &str) -> Result<(), String> {
    match kind {
        Kind::Enumeration(values) if values.is_empty() => Ok(()),
        Kind::Enumeration(values) if values.iter().any(|possible| possible == value) => Ok(()),
        Kind::Enumeration(values) => Err(format!("must be one of: {}", values.join(", "))),
        Kind::Integer { min, max } => {
            let number: i64 = value.parse().map_err(|_| "must be a whole number".to_owned())?;
            match (min, max) {
                (Some(min), _) if number < *min => Err(format!("must be at least {min}")),
                (_, Some(max)) if number > *max => Err(format!("must be at most {max}")),
                _ => Ok(()),
            }
        }
        Kind::Text { min, max } => {
            let length = value.chars().count() as u64;
            match (min, max) {
                _ if value.contains(char::is_control) => Err("must be one line of text".into()),
                (Some(min), _) if length < *min => Err(format!("must have at least {min} characters")),
                (_, Some(max)) if length > *max => Err(format!("must have at most {max} characters")),
                _ => Ok(()),
            }
        }
        Kind::OrderedList(elements) => {
            let sorted = |mut list: Vec<String>| {
                list.sort();
                list
            };
            let given = value.split(';').map(|element| element.trim().to_owned()).collect();
            if sorted(given) == sorted(elements.clone()) {
                return Ok(());
            }
            Err(format!("must be these in some order, with ; between them: {}", elements.join(", ")))
        }
        Kind::Password => Ok(()),
        Kind::Unknown(word) => Err(format!("is of a type that is not known here: {word}")),
    }
}
