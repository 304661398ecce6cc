//! Steps: as the catalogue keeps them, as a user asks for them, as a run plans them, and how they ended.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;

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
    /// Needs the agent; otherwise it runs in the controller.
    #[serde(default = "yes")]
    pub requires_ramdisk: bool,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    /// What it is, with its possible values.
    #[serde(default)]
    pub description: String,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
}

/// The steps a node offers, as learnt last; kept while the node is off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Catalogue {
    /// Steps in no particular order.
    pub steps: Vec<CatalogueStep>,
    /// Version of each hardware manager, as the agent told it.
    pub hardware_manager_version: Map<String, Value>,
    /// When they were learnt.
    pub learnt_at: Timestamp,
}

/// A step a user asks for in manual cleaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestedStep {
    /// Interface.
    pub interface: String,
    /// Name.
    pub step: String,
    /// Arguments.
    #[serde(default)]
    pub args: Map<String, Value>,
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

impl PlannedStep {
    /// `deploy.erase_devices`
    pub fn label(&self) -> String {
        format!("{}.{}", self.step.interface, self.step.step)
    }

    /// The step as it travels to an agent and shows in `node.clean_step`.
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
}

/// Weight of an interface when two steps have one priority (specs/cleaning-states.txt: power, management,
/// deploy; manual-cleaning adds bios and raid; vendor and firmware as in Ironic).
pub fn interface_weight(interface: &str) -> u8 {
    match interface {
        "vendor" => 7,
        "power" => 6,
        "management" => 5,
        "firmware" => 4,
        "deploy" => 3,
        "bios" => 2,
        "raid" => 1,
        _ => 0,
    }
}

/// Order of automated steps: priority first, then interface, then name so that the order is always the same.
pub fn run_order(a: &CatalogueStep, b: &CatalogueStep) -> Ordering {
    let priority = |step: &CatalogueStep| step.priority.as_f64().unwrap_or(0.0);
    priority(b)
        .total_cmp(&priority(a))
        .then_with(|| interface_weight(&b.interface).cmp(&interface_weight(&a.interface)))
        .then_with(|| a.step.cmp(&b.step))
}

/// The plan of an automated run: every step with a priority above 0, in [`run_order`].
pub fn automated_plan(steps: &[CatalogueStep]) -> Vec<PlannedStep> {
    let mut enabled: Vec<_> =
        steps.iter().filter(|step| step.priority.as_f64().unwrap_or(0.0) > 0.0).cloned().collect();
    enabled.sort_by(run_order);
    enabled.into_iter().map(|step| PlannedStep { step, given: Map::new() }).collect()
}

/// What is wrong with a list of requested steps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSteps {
    /// Nobody offers it.
    #[error("node does not support this clean step: {{'interface': '{interface}', 'step': '{step}'}}")]
    Unknown {
        /// Interface.
        interface: String,
        /// Name.
        step: String,
    },
    /// Required arguments are missing.
    #[error("clean step {interface}.{step} is missing these required arguments: {}", names.join(", "))]
    Missing {
        /// Interface.
        interface: String,
        /// Name.
        step: String,
        /// The arguments.
        names: Vec<String>,
    },
    /// Arguments the step does not take.
    #[error("clean step {interface}.{step} has these unexpected arguments: {}", names.join(", "))]
    Unexpected {
        /// Interface.
        interface: String,
        /// Name.
        step: String,
        /// The arguments.
        names: Vec<String>,
    },
}

/// The plan of a manual run: exactly the order asked for, checked against the catalogue.
pub fn manual_plan(asked: &[RequestedStep], known: &[CatalogueStep]) -> Result<Vec<PlannedStep>, BadSteps> {
    asked
        .iter()
        .map(|want| {
            let (interface, step) = (want.interface.clone(), want.step.clone());
            let found = known
                .iter()
                .find(|step| step.interface == want.interface && step.step == want.step)
                .ok_or_else(|| BadSteps::Unknown { interface: interface.clone(), step: step.clone() })?;
            let names: Vec<String> =
                want.args.keys().filter(|name| !found.args.contains_key(*name)).cloned().collect();
            if !names.is_empty() {
                return Err(BadSteps::Unexpected { interface, step, names });
            }
            let names: Vec<String> = found
                .args
                .iter()
                .filter(|(name, arg)| arg.required && !want.args.contains_key(*name))
                .map(|(name, _)| name.clone())
                .collect();
            if !names.is_empty() {
                return Err(BadSteps::Missing { interface, step, names });
            }
            Ok(PlannedStep { step: found.clone(), given: want.args.clone() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(interface: &str, name: &str, priority: f64) -> CatalogueStep {
        CatalogueStep {
            interface: interface.into(),
            step: name.into(),
            priority: Number::from_f64(priority).unwrap(),
            abortable: true,
            reboot_requested: false,
            idempotent: true,
            args: BTreeMap::new(),
            requires_ramdisk: true,
            provider: String::new(),
            raw: Map::new(),
        }
    }

    #[test]
    fn automated_order_is_priority_then_interface_then_name() {
        let plan = automated_plan(&[
            step("raid", "r", 10.0),
            step("deploy", "b", 10.0),
            step("deploy", "a", 10.0),
            step("management", "m", 10.0),
            step("power", "p", 10.0),
            step("deploy", "never", 0.0),
            step("deploy", "first", 10.5),
        ]);
        let labels: Vec<_> = plan.iter().map(PlannedStep::label).collect();
        assert_eq!(labels, ["deploy.first", "power.p", "management.m", "deploy.a", "deploy.b", "raid.r"]);
    }

    #[test]
    fn manual_plan_keeps_the_order_and_names_what_is_wrong() {
        let mut wanting = step("raid", "create_configuration", 0.0);
        wanting.args.insert("size".into(), Argument { description: "GiB".into(), required: true });
        let known = [step("deploy", "erase_devices", 10.0), wanting];
        let ask = |step: &str, interface: &str, args: Value| RequestedStep {
            interface: interface.into(),
            step: step.into(),
            args: args.as_object().unwrap().clone(),
        };
        let good = manual_plan(
            &[
                ask("create_configuration", "raid", serde_json::json!({"size": 1})),
                ask("erase_devices", "deploy", serde_json::json!({})),
            ],
            &known,
        )
        .unwrap();
        assert_eq!(good[0].label(), "raid.create_configuration");
        assert_eq!(good[0].wire()["args"], serde_json::json!({"size": 1}));
        let missing = manual_plan(&[ask("create_configuration", "raid", serde_json::json!({}))], &known);
        assert!(missing.unwrap_err().to_string().ends_with("missing these required arguments: size"));
        let extra = manual_plan(&[ask("erase_devices", "deploy", serde_json::json!({"x": 1}))], &known);
        assert!(extra.unwrap_err().to_string().ends_with("unexpected arguments: x"));
        let unknown = manual_plan(&[ask("nope", "deploy", serde_json::json!({}))], &known);
        assert!(unknown.unwrap_err().to_string().contains("'step': 'nope'"));
    }
}
