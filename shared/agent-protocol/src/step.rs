//! Steps as agents advertise them (`clean.get_clean_steps`) and as they travel back to be run.

use crate::command::ANNEAL;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

/// One advertised step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Name of the step.
    pub step: String,
    /// Larger runs earlier; 0 never runs by itself. Integer or float.
    pub priority: Number,
    /// Interface it belongs to: `deploy`, `raid`, …
    pub interface: String,
    /// The node must be rebooted after the step.
    #[serde(default)]
    pub reboot_requested: bool,
    /// Whether it may be stopped while it runs.
    #[serde(default)]
    pub abortable: bool,
    /// Arguments by name, Ironic's shape: `{"description": …, "required": …}`. Absent: the step does not say
    /// which it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argsinfo: Option<BTreeMap<String, ArgInfo>>,
    /// Arguments to run it with; only in a step that is to be executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// Anything else a peer put into the step; kept, since the agent must answer with the step as sent.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Description of one argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgInfo {
    /// What it is, with its possible values.
    #[serde(default)]
    pub description: String,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
    /// JSON Schema of its values, as far as [`crate::schema`] goes. Anneal's; others ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// What an agent of Anneal's adds to the result of a step, below [`ANNEAL`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepAddition {
    /// The step succeeded, and the node must be rebooted before the next one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reboot_requested: bool,
    /// The step failed for a controller that does not know this member. Any other reboots the node, and runs the step again with
    /// this checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_reboot: Option<Value>,
}

impl StepAddition {
    /// That of a result; empty where the result has none.
    #[must_use]
    pub fn of(result: &Value) -> Self {
        result.get(ANNEAL).and_then(|added| Self::deserialize(added).ok()).unwrap_or_default()
    }
}

/// Result of `clean.get_clean_steps`; deploy and service use the same shape under other keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AdvertisedSteps {
    /// Steps by hardware manager.
    #[serde(alias = "deploy_steps", alias = "service_steps")]
    pub clean_steps: BTreeMap<String, Vec<Step>>,
    /// Version of every hardware manager that is loaded.
    pub hardware_manager_version: BTreeMap<String, String>,
}
