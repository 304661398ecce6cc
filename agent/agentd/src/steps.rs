//! Steps of all hardware managers, merged; and a step run in the manager that advertised it.

mod offered;
mod priorities;

use crate::registry::Ending;
use agent_protocol::command::{ANNEAL, CommandError, Status};
use agent_protocol::inventory::Inventory;
use agent_protocol::step::{Step, StepAddition};
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome, Support};
use offered::Offered;
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys and error words of one kind of steps, as ironic-python-agent has them.
pub struct Words {
    /// `clean_steps`
    pub steps: &'static str,
    /// `clean_step`
    pub step: &'static str,
    /// `clean_result`
    pub result: &'static str,
    /// `clean_version`
    pub version: &'static str,
    /// `clean`
    pub adjective: &'static str,
    /// `CleaningError`
    pub error: &'static str,
    /// `Clean step failed`
    pub message: &'static str,
}

macro_rules! words {
    ($kind:literal, $error:literal, $message:literal) => {
        Words {
            steps: concat!($kind, "_steps"),
            step: concat!($kind, "_step"),
            result: concat!($kind, "_result"),
            version: concat!($kind, "_version"),
            adjective: $kind,
            error: $error,
            message: $message,
        }
    };
}

const CLEAN: Words = words!("clean", "CleaningError", "Clean step failed");
const DEPLOY: Words = words!("deploy", "DeploymentError", "Deploy step failed");
const SERVICE: Words = words!("service", "ServicingError", "Service step failed");
/// No command of ironic-python-agent's runs these; the words follow the others.
const INSPECT: Words = words!("inspect", "InspectionError", "Inspection step failed");

/// The words of a kind.
pub fn words(kind: StepKind) -> &'static Words {
    match kind {
        StepKind::Clean => &CLEAN,
        StepKind::Deploy => &DEPLOY,
        StepKind::Service => &SERVICE,
        StepKind::Inspect => &INSPECT,
    }
}

/// The merged steps of one kind on one machine.
pub struct StepTable {
    kind: StepKind,
    inventory: Arc<Inventory>,
    by_name: BTreeMap<String, Offered>,
    order: Vec<String>,
    versions: BTreeMap<String, String>,
}

impl StepTable {
    /// Ask every manager and merge. Steps of one name are one step: the highest support wins, then
    /// the highest priority, then the first manager by name (ironic-python-agent's rule).
    pub fn collect(
        managers: &[Arc<dyn HardwareManager>],
        inventory: &Arc<Inventory>,
        kind: StepKind,
    ) -> Self {
        let mut table = Self {
            kind,
            inventory: inventory.clone(),
            by_name: BTreeMap::new(),
            order: Vec::new(),
            versions: BTreeMap::new(),
        };
        let mut wishes = Vec::new();
        for manager in managers {
            let support = manager.evaluate(inventory);
            if support == Support::None {
                continue;
            }
            table.versions.insert(manager.name().to_owned(), manager.version().to_owned());
            for step in manager.steps(kind, inventory) {
                table.offer(Offered { manager: manager.clone(), support, step });
            }
            wishes.push((support, manager.name(), manager.priorities(kind, inventory)));
        }
        // The last one counts: that of the highest support, then the first manager by name.
        wishes.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.cmp(a.1)));
        for (_, manager, wishes) in wishes {
            wishes.iter().for_each(|wish| priorities::apply(&mut table.by_name, manager, wish));
        }
        table
    }

    fn offer(&mut self, candidate: Offered) {
        let name = candidate.step.step.clone();
        match self.by_name.get(&name) {
            None => self.order.push(name.clone()),
            Some(present) if beats(&candidate, present) => {}
            Some(_) => return,
        }
        self.by_name.insert(name, candidate);
    }

    /// Result of `get_<kind>_steps`. Every manager that supports the machine is named with its
    /// version, also one whose steps all lost.
    pub fn advertised(&self) -> Value {
        let mut steps: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
        for name in &self.order {
            let offered = &self.by_name[name];
            steps.entry(offered.manager.name()).or_default().push(&offered.step);
        }
        json!({ words(self.kind).steps: steps, "hardware_manager_version": self.versions })
    }

    /// Run the step of an `execute_<kind>_step` command to its end.
    ///
    /// `step` is echoed in the result as it was sent, without the configuration drive; `version` is what the controller saw when it
    /// cached the steps (`None` or null skips the check).
    pub fn execute(
        &self,
        step: &Value,
        node: &Value,
        version: Option<&Value>,
        context: &StepContext,
    ) -> Ending {
        if let Some(mismatch) = version.and_then(|version| self.version_mismatch(version)) {
            return mismatch;
        }
        let words = words(self.kind);
        let Some(name) = step.get("step").and_then(Value::as_str) else {
            let details = format!("Malformed {}, no \"step\" key: {}", words.step, without_configdrive(step));
            return Ending::failed("CommandExecutionError", "Command execution failed", details);
        };
        let Some(offered) = self.by_name.get(name).filter(|offered| interface_agrees(offered, step)) else {
            let details = format!("Could not find method: {name}");
            return Ending::failed(
                "HardwareManagerMethodNotFound",
                "No HardwareManager found to handle method",
                details,
            );
        };
        let echo = &without_configdrive(step);
        match self.call(offered, step, node).and_then(|call| offered.manager.run(&call, context)) {
            Ok(StepOutcome::Done(result)) => {
                Ending::done(Some(json!({ words.result: result, words.step: echo })))
            }
            Ok(StepOutcome::RebootRequested(result)) => {
                let added = StepAddition { reboot_requested: true, ..StepAddition::default() };
                Ending::done(Some(json!({ words.result: result, words.step: echo, ANNEAL: added })))
            }
            Err(error) => self.failure(error, echo),
        }
    }

    /// What the step would do, as its manager plans it; nothing is changed.
    pub fn plan(&self, step: &Value, node: &Value) -> Ending {
        let refused = |details| Ending::failed("PlanError", "The step cannot be planned", details);
        let name = step.get("step").and_then(Value::as_str).unwrap_or_default();
        let Some(offered) = self.by_name.get(name).filter(|offered| interface_agrees(offered, step)) else {
            return refused(format!("no hardware manager of this machine offers the step {name:?}"));
        };
        match self.call(offered, step, node).and_then(|call| offered.manager.plan(&call)) {
            Ok(plan) => Ending::done(Some(plan)),
            Err(error) => refused(error.to_string()),
        }
    }

    /// Name and version of the manager that runs this step.
    pub fn manager_of(&self, step: &Value) -> Option<(String, String)> {
        let manager = &self.by_name.get(step.get("step")?.as_str()?)?.manager;
        Some((manager.name().to_owned(), manager.version().to_owned()))
    }

    fn version_mismatch(&self, version: &Value) -> Option<Ending> {
        if version.is_null() || *version == json!(self.versions) {
            return None;
        }
        let current = json!(self.versions);
        Some(Ending {
            status: Status::VersionMismatch,
            error: Some(CommandError {
                kind: "VersionMismatch".into(),
                code: 409,
                message: "Hardware managers version mismatch, reload agent with correct version".into(),
                details: format!("Current versions: {current}, versions used by ironic: {version}"),
            }),
            result: None,
        })
    }

    /// A call made of the step as sent, completed from the advertised one where it is silent.
    fn call(&self, offered: &Offered, step: &Value, node: &Value) -> Result<StepCall, StepError> {
        let mut full = step.as_object().cloned().unwrap_or_default();
        let advertised = &offered.step;
        full.entry("interface").or_insert_with(|| advertised.interface.clone().into());
        full.entry("priority").or_insert_with(|| advertised.priority.clone().into());
        full.retain(|key, value| !(value.is_null() && (key == "args" || key == "argsinfo")));
        let args = hwm_sdk::checked_arguments(full.get("args"), advertised.argsinfo.as_ref())?;
        let step: Step = serde_json::from_value(Value::Object(full))
            .map_err(|error| StepError::Argument { name: "step".into(), problem: error.to_string() })?;
        Ok(StepCall { kind: self.kind, step, args, node: node.clone(), inventory: self.inventory.clone() })
    }

    fn failure(&self, error: StepError, step: &Value) -> Ending {
        let words = words(self.kind);
        let details = error.to_string();
        let (kind, message, report) = match &error {
            StepError::Unknown { .. } => {
                ("HardwareManagerMethodNotFound", "No HardwareManager found to handle method", &Value::Null)
            }
            StepError::Argument { .. } | StepError::Declined { .. } | StepError::NeedsReboot { .. } => {
                (words.error, words.message, &Value::Null)
            }
            StepError::Cancelled { report } => ("Cancelled", "Step cancelled by request", report),
            StepError::Failed { report, .. } => (words.error, words.message, report),
        };
        let mut ending = Ending::failed(kind, message, details);
        if !report.is_null() {
            ending.result = Some(json!({ words.result: report, words.step: step }));
        }
        if let StepError::NeedsReboot { checkpoint, .. } = &error {
            let added = StepAddition { after_reboot: Some(checkpoint.clone()), ..StepAddition::default() };
            ending.result = Some(json!({ words.result: null, words.step: step, ANNEAL: added }));
        }
        ending
    }
}

/// The step as it was sent. A configuration drive may have passwords in it and many MB, and the result of a step is sent
/// whenever the commands are asked for.
fn without_configdrive(step: &Value) -> Value {
    let mut echo = step.clone();
    for place in ["/args/configdrive", "/args/image_info/configdrive"] {
        if let Some(drive) = echo.pointer_mut(place).filter(|drive| drive.is_string()) {
            *drive = Value::from("******");
        }
    }
    echo
}

/// The words of a step that blew up, IPA's: the agent lives on.
pub fn panicked(kind: StepKind, step: &Value, panic: &str) -> Ending {
    let words = words(kind);
    let name = step.get("step").and_then(Value::as_str).unwrap_or("?");
    let details = format!("Unexpected exception performing {} step {name}. panic: {panic}", words.adjective);
    Ending::failed(words.error, words.message, details)
}

fn interface_agrees(offered: &Offered, step: &Value) -> bool {
    step.get("interface").is_none_or(|interface| interface == offered.step.interface.as_str())
}

fn beats(candidate: &Offered, present: &Offered) -> bool {
    let priority = |offered: &Offered| offered.step.priority.as_f64().unwrap_or(0.0);
    candidate
        .support
        .cmp(&present.support)
        .then_with(|| priority(candidate).partial_cmp(&priority(present)).unwrap_or(Ordering::Equal))
        .then_with(|| present.manager.name().cmp(candidate.manager.name()))
        == Ordering::Greater
}

#[cfg(test)]
mod tests;
