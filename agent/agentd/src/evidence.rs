//! What this process signs of an erase, for a controller that makes certificates of it.

use crate::VERSION;
use crate::registry::Ending;
use crate::state::State;
use crate::steps;
use agent_protocol::command::Status;
use agent_protocol::record::EraseReport;
use certificate::{AgentName, EVIDENCE, Evidence, Machine, ManagerName, StepName};
use hwm_sdk::StepKind;
use serde_json::Value;

/// A step that has ended.
pub struct Ended<'a> {
    /// Kind of the step.
    pub kind: StepKind,
    /// The step as it was sent.
    pub step: &'a Value,
    /// The node as it was sent.
    pub node: &'a Value,
    /// Id of the command.
    pub command_id: &'a str,
    /// Name and version of the agent that ran it.
    pub manager: Option<(String, String)>,
}

/// Puts the evidence next to the result, if that is the report of an erase and the controller has offered the extension:
/// an Ironic gets the result as ironic-python-agent gives it.
pub fn attach(state: &State, ended: &Ended, ending: &mut Ending) {
    let Some(signer) = state.signer().filter(|_| state.extension()) else { return };
    let Some(Value::Object(result)) = &mut ending.result else { return };
    let report = result.get(steps::words(ended.kind).result).filter(|report| report.get("disks").is_some());
    let Some(report) = report.and_then(|report| serde_json::from_value::<EraseReport>(report.clone()).ok())
    else {
        return;
    };
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let (identity, inventory) = (state.identity(), state.inventory());
    let vendor = &inventory.system_vendor;
    let (name, version) = ended.manager.clone().unwrap_or_default();
    let evidence = Evidence {
        version: certificate::VERSION,
        agent: AgentName {
            version: VERSION.to_owned(),
            boot_id: identity.boot_id.clone(),
            process_id: identity.process_id.clone(),
        },
        machine: Machine {
            manufacturer: vendor.manufacturer.clone(),
            product_name: vendor.product_name.clone(),
            serial_number: vendor.serial_number.clone(),
        },
        node: text(ended.node, "uuid"),
        command_id: ended.command_id.to_owned(),
        step: StepName {
            kind: steps::words(ended.kind).adjective.to_owned(),
            interface: text(ended.step, "interface"),
            step: text(ended.step, "step"),
        },
        manager: ManagerName { name, version },
        succeeded: ending.status == Status::Succeeded,
        error: ending.error.as_ref().map(|error| error.details.clone()),
        disks: report.disks,
        ignored_controllers: report.ignored_controllers,
    };
    match signer.sign(&evidence) {
        // Plain data with string keys: this cannot fail, and the controller does not believe a null.
        Ok(signed) => {
            drop(result.insert(EVIDENCE.to_owned(), serde_json::to_value(signed).unwrap_or_default()))
        }
        // The controller rejects the report: this agent has sent it a key.
        Err(error) => tracing::error!(%error, "the evidence of the erase is not signed"),
    }
}
