//! What this process signs of an erase or a deployment, for a controller that makes certificates of it.

use crate::VERSION;
use crate::registry::Ending;
use crate::state::State;
use crate::steps;
use agent_protocol::command::Status;
use agent_protocol::deployment::{BootEntries, WrittenDisk};
use agent_protocol::record::EraseReport;
use certificate::{AgentName, EVIDENCE, Evidence, INSTALL_BOOTLOADER, Machine, ManagerName, StepName};
use hwm_sdk::StepKind;
use serde_json::Value;

/// Key of the boot entries in the result of `image.install_bootloader`.
pub const BOOT_ENTRIES: &str = "boot_entries";

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

/// What a result reports of the disks, or of the firmware that starts one.
#[derive(Default)]
struct Report {
    erase: EraseReport,
    deployed: Option<WrittenDisk>,
    boot_entries: Option<BootEntries>,
}

/// Which command it is, for whom.
struct About<'a> {
    node: String,
    command_id: &'a str,
    step: StepName,
    manager: ManagerName,
}

/// Puts the evidence next to the result, if that is the report of an erase or of an image that was written, and the
/// controller has offered the extension: an Ironic gets the result as ironic-python-agent gives it.
pub fn attach(state: &State, ended: &Ended, ending: &mut Ending) {
    let result = ending.result.as_ref().and_then(|result| result.get(steps::words(ended.kind).result));
    let Some(report) = result.and_then(|result| Report::of_step(ended.kind, result)) else { return };
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let (name, version) = ended.manager.clone().unwrap_or_default();
    let about = About {
        node: text(ended.node, "uuid"),
        command_id: ended.command_id,
        step: StepName {
            kind: steps::words(ended.kind).adjective.to_owned(),
            interface: text(ended.step, "interface"),
            step: text(ended.step, "step"),
        },
        manager: ManagerName { name, version },
    };
    sign(state, about, report, ending);
}

/// The same of the boot entries in the result of `image.install_bootloader`, for the node that the controller named.
pub fn attach_boot_entries(state: &State, node: &str, command_id: &str, ending: &mut Ending) {
    let entries = ending.result.as_ref().and_then(|result| result.get(BOOT_ENTRIES));
    let Some(entries) = entries.and_then(|entries| serde_json::from_value(entries.clone()).ok()) else {
        return;
    };
    let about = About {
        node: node.to_owned(),
        command_id,
        step: StepName::of(INSTALL_BOOTLOADER),
        manager: ManagerName { name: "anneal-agent".to_owned(), version: VERSION.to_owned() },
    };
    sign(state, about, Report { boot_entries: Some(entries), ..Report::default() }, ending);
}

impl Report {
    fn of_step(kind: StepKind, result: &Value) -> Option<Self> {
        if result.get("disks").is_some() {
            let erase = serde_json::from_value(result.clone()).ok()?;
            return Some(Self { erase, ..Self::default() });
        }
        let image = result.get("image").filter(|_| kind == StepKind::Deploy)?;
        let deployed = serde_json::from_value(image.clone()).ok()?;
        Some(Self { deployed: Some(deployed), ..Self::default() })
    }
}

fn sign(state: &State, about: About, report: Report, ending: &mut Ending) {
    let Some(signer) = state.signer().filter(|_| state.extension()) else { return };
    let Some(Value::Object(result)) = &mut ending.result else { return };
    let (identity, inventory) = (state.identity(), state.inventory());
    let vendor = &inventory.system_vendor;
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
        node: about.node,
        command_id: about.command_id.to_owned(),
        step: about.step,
        manager: about.manager,
        succeeded: ending.status == Status::Succeeded,
        error: ending.error.as_ref().map(|error| error.details.clone()),
        disks: report.erase.disks,
        ignored_controllers: report.erase.ignored_controllers,
        deployed: report.deployed,
        boot_entries: report.boot_entries,
    };
    match signer.sign(&evidence) {
        // Plain data with string keys: this cannot fail, and the controller does not believe a null.
        Ok(signed) => {
            drop(result.insert(EVIDENCE.to_owned(), serde_json::to_value(signed).unwrap_or_default()))
        }
        // The controller rejects the report: this agent has sent it a key.
        Err(error) => tracing::error!(%error, "the evidence is not signed"),
    }
}
