//! Settings of controllers, which are shown like those of a BIOS: `c0.patrol_read`.

use crate::tool::Tool;
use crate::topology::{Topology, read};
use hwm_sdk::{StepError, StepOutcome};
use serde_json::{Value, json};

/// Name of the argument.
pub const ARGUMENT: &str = "settings";

/// Write settings that differ and read them back. All are judged before the first is written.
///
/// # Errors
/// [`StepError::Argument`] for one that is not there or cannot have its value; [`StepError::Failed`] for one that the
/// controller did not take.
pub fn apply(tool: &Tool, settings: &Value) -> Result<StepOutcome, StepError> {
    let wanted: Vec<(&str, &str)> = settings
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|setting| Some((setting["name"].as_str()?, setting["value"].as_str()?)))
        .collect();
    let before = read(tool)?;
    for (name, value) in &wanted {
        judge(&before, name, value).map_err(|problem| StepError::Argument {
            name: ARGUMENT.to_owned(),
            problem: format!("nothing was written: {name} {problem}"),
        })?;
    }
    let differs = |(name, value): &&(&str, &str)| present(&before, name) != Some(value);
    for (name, value) in wanted.iter().filter(differs) {
        let (controller, property) = name.trim_start_matches('c').split_once('.').unwrap_or_default();
        tool.ask(&[&format!("/c{controller}"), "set", &format!("{property}={value}")])?;
    }
    let after = read(tool)?;
    match wanted.iter().find(|(name, value)| present(&after, name) != Some(value)) {
        Some((name, _)) => {
            let reason = format!("setting {name} was written without an error, and reads as something else");
            Err(StepError::Failed { reason, report: Value::Null })
        }
        None => Ok(StepOutcome::Done(
            json!({ "changed": wanted.iter().filter(differs).map(|(name, _)| name).collect::<Vec<_>>() }),
        )),
    }
}

fn present<'a>(topology: &'a Topology, name: &str) -> Option<&'a str> {
    topology.settings.iter().find(|setting| setting.name == name)?.value.as_deref()
}

fn judge(topology: &Topology, name: &str, value: &str) -> Result<(), String> {
    let setting = topology.settings.iter().find(|setting| setting.name == name);
    let setting = setting.ok_or("is no setting of any controller")?;
    match &setting.allowable_values {
        Some(values) if !values.iter().any(|possible| possible == value) => {
            Err(format!("must be one of: {}", values.join(", ")))
        }
        _ => Ok(()),
    }
}
