//! Settings of a recorded BIOS: what its attribute registry (DSP0268, `AttributeRegistry`) says of them.

use serde_json::{Map, Value, json};

use super::{Refusal, Tree};

/// A setting that can be changed, with the value it has and another one that is allowed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Name of the setting.
    pub name: String,
    /// Value in force.
    pub from: Value,
    /// Another one.
    pub to: Value,
}

impl Tree {
    /// What the registry of a Bios resource says, by the names of settings; empty where the recording has none.
    fn registry(&self, bios: &Value) -> Map<String, Value> {
        // Versions are written in several ways, and not always the same in both places.
        let stem = |name: &Value| name.as_str().and_then(|name| name.split('.').next()).map(str::to_owned);
        let wanted = stem(&bios["AttributeRegistry"]).unwrap_or_else(|| "BiosAttributeRegistry".to_owned());
        let named = |resource: &Value| {
            resource["@odata.type"].as_str().is_some_and(|kind| kind.contains("MessageRegistryFile"))
                && ["Registry", "Id"].iter().any(|key| stem(&resource[key]).as_ref() == Some(&wanted))
        };
        let file = self.resources().find(|(_, resource)| named(resource)).map(|(_, file)| file);
        let location = file.and_then(|file| file["Location"][0]["Uri"].as_str());
        let entries =
            location.and_then(|uri| self.get(uri)).map(|registry| &registry["RegistryEntries"]["Attributes"]);
        let entries = entries.and_then(Value::as_array).into_iter().flatten();
        entries
            .filter_map(|entry| Some((entry["AttributeName"].as_str()?.to_owned(), entry.clone())))
            .collect()
    }

    /// A setting of the BIOS that takes another value, if the recording has one.
    #[must_use]
    pub fn changeable_setting(&self, bios: &Value) -> Option<Change> {
        let registry = self.registry(bios);
        let attributes = bios["Attributes"].as_object()?;
        attributes.iter().find_map(|(name, from)| {
            let to = match registry.get(name) {
                Some(entry) => another(entry, from)?,
                None if registry.is_empty() => opposite(from)?,
                None => return None,
            };
            Some(Change { name: name.clone(), from: from.clone(), to })
        })
    }

    /// Whether a setting of the BIOS is there and can be written.
    #[must_use]
    pub fn has_writable_setting(&self, bios: &Value, name: &str) -> bool {
        let is_fixed = |entry: &Value| entry["ReadOnly"] == true;
        bios["Attributes"].get(name).is_some() && !self.registry(bios).get(name).is_some_and(is_fixed)
    }

    /// Whether a Bios resource takes these settings.
    pub(super) fn allows_settings(&self, bios: &Value, settings: &Map<String, Value>) -> Result<(), Refusal> {
        let registry = self.registry(bios);
        for (name, value) in settings {
            let now = bios["Attributes"].get(name);
            let Some(now) = now else {
                return Err(Refusal::bad("PropertyUnknown", format!("there is no setting {name}")));
            };
            let entry = registry.get(name).unwrap_or(&Value::Null);
            let fits = match entry["Type"].as_str() {
                Some("Enumeration") => names(entry).any(|known| known == value),
                Some("Integer") => is_between(entry, value),
                Some("Boolean") => value.is_boolean(),
                Some("String" | "Password") => is_short(entry, value),
                _ => now.is_null() || std::mem::discriminant(now) == std::mem::discriminant(value),
            };
            if !fits {
                return Err(Refusal::bad("PropertyValueNotInList", format!("{name} cannot be {value}")));
            }
            if entry["ReadOnly"] == true {
                return Err(Refusal::bad("PropertyNotWritable", format!("{name} is read-only")));
            }
        }
        Ok(())
    }
}

fn names(entry: &Value) -> impl Iterator<Item = &Value> {
    entry["Value"].as_array().into_iter().flatten().map(|value| &value["ValueName"])
}

/// Another value of a list that has the present one.
fn another(entry: &Value, from: &Value) -> Option<Value> {
    let is_fixed = ["ReadOnly", "GrayOut", "Hidden"].iter().any(|key| entry[key] == true);
    if is_fixed || entry["Type"] != "Enumeration" || !names(entry).any(|name| name == from) {
        return None;
    }
    names(entry).find(|name| *name != from).cloned()
}

fn opposite(from: &Value) -> Option<Value> {
    match from {
        Value::Bool(on) => Some(json!(!on)),
        Value::String(word) if word == "Enabled" => Some(json!("Disabled")),
        Value::String(word) if word == "Disabled" => Some(json!("Enabled")),
        _ => None,
    }
}

fn is_between(entry: &Value, value: &Value) -> bool {
    let Some(number) = value.as_i64() else { return false };
    let bound = |key: &str, missing| entry[key].as_i64().unwrap_or(missing);
    (bound("LowerBound", i64::MIN)..=bound("UpperBound", i64::MAX)).contains(&number)
}

fn is_short(entry: &Value, value: &Value) -> bool {
    let longest = entry["MaxLength"].as_u64().filter(|longest| *longest > 0).unwrap_or(u64::MAX);
    value.as_str().is_some_and(|text| text.chars().count() as u64 <= longest)
}
