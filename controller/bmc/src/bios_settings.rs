//! The argument `settings` of `bios.apply_configuration`, one for every driver.

use serde_json::{Map, Value};

use crate::declared::Arg;

/// In Ironic's form: a list of names and values.
pub(crate) const BIOS_SETTINGS: Arg = Arg {
    name: "settings",
    description: "The settings to apply: a list of {\"name\": …, \"value\": …}; the value is a string, a number, \
                  true or false.",
    required: true,
    schema: r#"{"type": "array", "minItems": 1, "maxItems": 1000, "items": {
        "type": "object", "required": ["name", "value"], "additionalProperties": false, "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 256},
            "value": {"type": ["string", "number", "boolean"], "maxLength": 4096}}}}"#,
};

/// The settings by name. `Err` is what is wrong with them.
pub(crate) fn bios_settings(args: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut settings = Map::new();
    for setting in args.get("settings").and_then(Value::as_array).into_iter().flatten() {
        let name = setting.get("name").and_then(Value::as_str).unwrap_or_default();
        let value = setting.get("value").cloned().unwrap_or_default();
        if settings.insert(name.to_owned(), value).is_some() {
            return Err(format!("argument settings names '{name}' more than once"));
        }
    }
    Ok(settings)
}
