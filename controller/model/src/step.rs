//! Steps: as the catalogue keeps them, as a user asks for them, as a run plans them, and how they ended.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

/// The three kinds of steps; one engine runs them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Clean steps.
    Clean,
    /// Deploy steps.
    Deploy,
    /// Service steps.
    Service,
}

impl StepKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Clean, Self::Deploy, Self::Service];

    /// `clean`, `deploy`, `service`: the word in Ironic's names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Deploy => "deploy",
            Self::Service => "service",
        }
    }

    /// Field of the node that shows the current step, and key of the agent's results: `clean_step`.
    pub fn step_field(self) -> &'static str {
        match self {
            Self::Clean => "clean_step",
            Self::Deploy => "deploy_step",
            Self::Service => "service_step",
        }
    }

    /// Key of `driver_internal_info` and of the request: `clean_steps`.
    pub fn steps_field(self) -> &'static str {
        match self {
            Self::Clean => "clean_steps",
            Self::Deploy => "deploy_steps",
            Self::Service => "service_steps",
        }
    }

    /// Key of `driver_internal_info`: `clean_step_index`.
    pub fn index_field(self) -> &'static str {
        match self {
            Self::Clean => "clean_step_index",
            Self::Deploy => "deploy_step_index",
            Self::Service => "service_step_index",
        }
    }

    /// Key of a step's result as agents name it: `clean_result`.
    pub fn result_field(self) -> &'static str {
        match self {
            Self::Clean => "clean_result",
            Self::Deploy => "deploy_result",
            Self::Service => "service_result",
        }
    }
}

/// One step a node is known to offer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CatalogueStep {
    /// Interface: `deploy`, `raid`, …
    pub interface: String,
    /// Name.
    pub step: String,
    /// Larger runs earlier; 0 never runs by itself. Integer or float.
    pub priority: Number,
    /// Whether it may be stopped while it runs.
    #[serde(default)]
    pub abortable: bool,
    /// The node must be rebooted after it.
    #[serde(default)]
    pub reboot_requested: bool,
    /// Whether it may run again after an interruption. Only what says so itself is repeated.
    #[serde(default)]
    pub idempotent: bool,
    /// Arguments by name.
    #[serde(default)]
    pub args: BTreeMap<String, Argument>,
    /// Needs the ramdisk to be running, wherever the step itself runs.
    #[serde(default = "yes")]
    pub requires_ramdisk: bool,
    /// Run by the agent; otherwise by the controller, out-of-band.
    #[serde(default = "yes")]
    pub in_band: bool,
    /// Hardware manager or interface that advertised it.
    #[serde(default)]
    pub provider: String,
    /// The step as the agent sent it: it is sent back like that.
    #[serde(default)]
    pub raw: Map<String, Value>,
}

fn yes() -> bool {
    true
}

/// Description of an argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Argument {
    /// What it is, with its possible values.
    #[serde(default)]
    pub description: String,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
    /// JSON Schema of its value, if one was declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// The steps a node offers, as learnt last; kept while the node is off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Catalogue {
    /// Steps in no particular order.
    pub steps: Vec<CatalogueStep>,
    /// Version of each hardware manager, as the agent reported it.
    pub hardware_manager_version: Map<String, Value>,
    /// When they were learnt.
    pub learnt_at: Timestamp,
}

/// A step a user (or a deploy template) asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestedStep {
    /// Interface.
    pub interface: String,
    /// Name.
    pub step: String,
    /// Arguments.
    #[serde(default)]
    pub args: Map<String, Value>,
    /// Priority, with deploy steps: instead of the declared one, 0 switches the step off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Number>,
}

/// A step a run is going to execute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// The step as it stood in the catalogue when the run was planned.
    #[serde(flatten)]
    pub step: CatalogueStep,
    /// Arguments to run it with.
    #[serde(default)]
    pub given: Map<String, Value>,
}

impl CatalogueStep {
    /// `deploy.erase_devices`
    pub fn label(&self) -> String {
        format!("{}.{}", self.interface, self.step)
    }

    /// Whether it runs without being asked for.
    pub fn is_enabled(&self) -> bool {
        self.priority.as_f64().unwrap_or(0.0) > 0.0
    }
}

impl PlannedStep {
    /// `deploy.erase_devices`
    pub fn label(&self) -> String {
        self.step.label()
    }

    /// The step as it travels to an agent and shows in `node.clean_step`, `deploy_step` or `service_step`.
    pub fn wire(&self) -> Map<String, Value> {
        let mut wire = self.step.raw.clone();
        wire.insert("interface".into(), self.step.interface.clone().into());
        wire.insert("step".into(), self.step.step.clone().into());
        wire.insert("priority".into(), Value::Number(self.step.priority.clone()));
        wire.insert("abortable".into(), self.step.abortable.into());
        wire.insert("reboot_requested".into(), self.step.reboot_requested.into());
        wire.insert("requires_ramdisk".into(), self.step.requires_ramdisk.into());
        if !self.given.is_empty() {
            wire.insert("args".into(), Value::Object(self.given.clone()));
        }
        wire
    }
}

/// How one planned step ended. A run counts as done only when every step has a stored success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// Index into the plan.
    pub index: usize,
    /// Id of the command that ran it.
    pub command_id: String,
    /// When the result was stored.
    pub at: Timestamp,
    /// The agent's result, for an erase step the report with a record per disk.
    pub result: Value,
    /// `None`: it succeeded. Otherwise why it failed.
    pub error: Option<String>,
    /// The erasure certificate that was stored with it; none of other steps, and none without evidence of the agent.
    #[serde(default)]
    pub certificate: Option<String>,
    /// The finding of the evidence that came with it; `None` of a step without evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

impl StepResult {
    /// A success, without evidence.
    pub fn success(index: usize, command_id: String, at: Timestamp, result: Value) -> Self {
        Self { index, command_id, at, result, error: None, certificate: None, finding: None }
    }
}
