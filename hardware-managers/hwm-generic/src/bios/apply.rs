//! The step that changes settings.

use super::attributes::{Driver, drivers};
use super::change::{Change, changes};
use hwm_sdk::{Argument, StepCall, StepContext, StepError, StepOutcome};
use serde_json::{Value, json};
use std::path::Path;

const SETTINGS: &str = "settings";

/// Its argument, in the form of Ironic's `bios.apply_configuration`.
pub const fn arguments() -> &'static [Argument] {
    &[Argument {
        name: SETTINGS,
        description: "The settings to apply: a list of {\"name\": …, \"value\": …}; the value is a string, a number, true \
                      or false",
        required: true,
        schema,
    }]
}

fn schema() -> Value {
    json!({
        "type": "array", "minItems": 1, "maxItems": 1000,
        "items": {
            "type": "object", "required": ["name", "value"], "additionalProperties": false,
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 256},
                "value": {"type": ["string", "number", "boolean"], "maxLength": 4096},
            },
        },
    })
}

/// How a setting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It had the value already.
    Unchanged,
    /// Written, and it reads the same.
    Changed,
    /// Written; the firmware reports the old value until the next boot.
    Pending,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Changed => "changed",
            Self::Pending => "pending",
        }
    }
}

/// Apply the settings of `call`. All are judged before the first is written; each is read back. Done again it
/// writes only what still differs.
///
/// # Errors
/// [`StepError::Argument`] when a setting is not there, or must not or cannot have its value; nothing was written.
/// [`StepError::Failed`] when the firmware refuses one, or forgets it; what was done before is in the report.
pub fn apply(sys: &Path, call: &StepCall, context: &StepContext) -> Result<StepOutcome, StepError> {
    let drivers = drivers(sys);
    let settings = call.args.get(SETTINGS).unwrap_or(&Value::Null);
    let changes = changes(&drivers, settings)
        .map_err(|problem| StepError::Argument { name: SETTINGS.to_owned(), problem })?;
    let mut done: Vec<(&str, Outcome)> = Vec::new();
    for change in &changes {
        if context.is_cancelled() {
            return Err(StepError::Cancelled { report: report(&done) });
        }
        match write(&drivers, change) {
            Ok(outcome) => done.push((&change.attribute.name, outcome)),
            Err(problem) => {
                let reason = format!("BIOS setting {}: {problem}", change.attribute.name);
                return Err(StepError::Failed { reason, report: report(&done) });
            }
        }
    }
    // Also when nothing was written now: it may have been before an interruption.
    if drivers.iter().any(Driver::pending_reboot) {
        return Ok(StepOutcome::RebootRequested(report(&done)));
    }
    Ok(StepOutcome::Done(report(&done)))
}

fn write(drivers: &[Driver], change: &Change) -> Result<Outcome, String> {
    if !change.differs {
        return Ok(Outcome::Unchanged);
    }
    change.attribute.write(&change.value).map_err(|error| format!("the firmware refuses it: {error}"))?;
    match change.attribute.read() {
        Some(value) if value == change.value => Ok(Outcome::Changed),
        _ if drivers.iter().any(Driver::pending_reboot) => Ok(Outcome::Pending),
        Some(_) => Err("it was written without an error, and reads as something else".into()),
        None => Err("it was written, and cannot be read back".into()),
    }
}

/// Names and outcomes; no value of an argument is in any result.
fn report(done: &[(&str, Outcome)]) -> Value {
    let entry = |(name, outcome): &(&str, Outcome)| json!({"name": name, "outcome": outcome.word()});
    json!({ "settings": done.iter().map(entry).collect::<Vec<Value>>() })
}
