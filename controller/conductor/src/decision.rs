//! The types of a decision: the snapshot it is made from, the action it chooses, the action's outcome.

use crate::issuer::Proof;
use agent_protocol::command::CommandStatus;
use agent_protocol::step::AdvertisedSteps;
use model::boot::Boot;
use model::run::PersistentBoot;
use model::{
    Abilities, Catalogue, Contact, Event, Health, Inventory, Node, PlannedStep, PowerState, PowerTarget,
    Resource, RunKind, StepKind, Timestamp, Wait,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::Inspected;

/// The input of a decision.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The node as stored.
    pub node: Node,
    /// Contact with its agent as stored.
    pub contact: Contact,
    /// What the interfaces of its driver support, or why they cannot be used.
    pub abilities: Result<Arc<Abilities>, String>,
    /// The in-band steps of the run's kind as the agent last advertised them; loaded only at the start of a run.
    pub catalogue: Option<Catalogue>,
    /// The inventory that was last reported; loaded only while one is awaited.
    pub inventory: Option<Inventory>,
    /// The inspection rules and their ports; loaded only when an inventory is present or requested.
    pub rules: Rules,
    /// Since when this controller receives heartbeats: its start. Silence is measured from then.
    pub listening_since: Timestamp,
    /// Now.
    pub now: Timestamp,
}

impl Snapshot {
    /// A snapshot without the parts that are loaded only in some states.
    pub fn of(
        node: Node,
        contact: Contact,
        abilities: Result<Arc<Abilities>, String>,
        listening_since: Timestamp,
        now: Timestamp,
    ) -> Self {
        let rules = Rules::default();
        Self { node, contact, abilities, catalogue: None, inventory: None, rules, listening_since, now }
    }
}

/// The inspection rules, and their input in addition to the node and its inventory.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// All of them, oldest first.
    pub rules: Vec<Resource>,
    /// Ports of the node.
    pub ports: Vec<Resource>,
    /// Drivers of this controller, which a rule may choose from.
    pub drivers: Vec<String>,
}

/// What to do next for a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Do nothing until `wake_at` or the bell. The wait is stored if it differs from the stored one.
    Sleep {
        /// What is awaited.
        wait: Option<Wait>,
        /// When to look again at the latest.
        wake_at: Option<Timestamp>,
    },
    /// Store a change; no action is needed.
    Record(Box<Change>),
    /// Do one action; [`crate::stages::apply_outcome`] turns its outcome into a change.
    Act(Action),
    /// Store a change that records the start of the action, then do it: for actions that must not be done twice. A change
    /// that is stored without an outcome means that the action was interrupted.
    Begin(Box<Change>, Action),
}

/// A change to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The node as it is to be.
    pub node: Node,
    /// Events that record why.
    pub events: Vec<Event>,
    /// The boot of the agent is over: forget its token and address. Stored before the node.
    pub forget_agent: bool,
    /// The boot that begins now, with its nonce; stored in the place of the agent that is forgotten.
    pub next_boot: Option<Boot>,
    /// Steps that the agent advertised. Stored before the node.
    pub catalogues: Vec<(StepKind, Catalogue)>,
    /// The inventory and ports that an inspection changes; stored together with the node.
    pub inspected: Option<Box<Inspected>>,
    /// The agent's signed evidence of the step that ended: becomes a certificate, stored together with the node.
    pub evidence: Option<Box<Proof>>,
}

impl Change {
    /// A change of the node alone.
    pub fn of(node: Node) -> Self {
        Self {
            node,
            events: Vec::new(),
            forget_agent: false,
            next_boot: None,
            catalogues: Vec::new(),
            inspected: None,
            evidence: None,
        }
    }

    /// Whether only the node is to be stored.
    pub fn is_of_the_node_alone(&self) -> bool {
        !self.forget_agent
            && self.catalogues.is_empty()
            && self.inspected.is_none()
            && self.evidence.is_none()
    }

    /// The change with one more event.
    #[must_use]
    pub fn with_event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }
}

/// One action on a BMC or an agent. All but [`Action::RunStep`] are idempotent.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Check that the BMC can be used, and read the power state.
    VerifyBmc,
    /// Read the power state.
    ReadPower,
    /// Read the power state and, if the BMC reports it, the health of the hardware.
    ReadState,
    /// Request the target, unless the node is already in the resulting state (a reboot is always requested); then read
    /// the power state.
    SetPower(PowerTarget),
    /// Read the persistent boot device.
    ReadBootDevice,
    /// Make the next boot, and only that, a network boot.
    SetBootDevice,
    /// Insert the boot medium of the boot that comes next, and make that boot, and only that, one from it.
    InsertMedium,
    /// Eject the boot medium, wherever it is.
    EjectMedium,
    /// Make this the persistent boot device.
    RestoreBootDevice(PersistentBoot),
    /// Ask the agent for its steps: those of this kind are required, those of the other kinds optional.
    AskSteps(StepKind),
    /// Run a step of an interface in the controller.
    RunStep {
        /// Id of this execution.
        command_id: String,
        /// Kind of the step.
        kind: StepKind,
        /// The step.
        step: Box<PlannedStep>,
        /// The step was started before and continues in the BMC: only ask about it.
        polling: bool,
    },
    /// Ask the BMC for the inventory.
    InspectBmc,
    /// Send the command with this id, unless the agent has it already.
    SendStep {
        /// Id of the command.
        command_id: String,
        /// The kind of the run.
        run: RunKind,
        /// The step.
        step: Box<PlannedStep>,
    },
    /// Ask for the status of the command with this id.
    AskCommand {
        /// Id of the command.
        command_id: String,
    },
    /// Ask the agent to stop the command.
    CancelCommand {
        /// Id of the command.
        command_id: String,
    },
    /// Ask the agent for the logs of its ramdisk, and store them in the file of this name.
    CollectLogs(String),
}

/// The outcome of an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Power state as read after the action.
    Power(PowerState),
    /// The BMC did what was asked, if anything was, and reports no power state.
    PowerUnknown,
    /// Power state and health as read.
    State(PowerState, Option<Health>),
    /// Done, without a value.
    Done,
    /// The persistent boot device, if the BMC has one.
    BootDevice(Option<PersistentBoot>),
    /// Steps of the agent, by kind.
    Steps(BTreeMap<StepKind, AdvertisedSteps>),
    /// A step of an interface succeeded, with this result.
    StepDone(Value),
    /// A step of an interface continues in the BMC; ask again later.
    StepRunning(String),
    /// The inventory that the BMC reports.
    Inventory(Inventory),
    /// The status of a command, as the agent reports it.
    Command(CommandStatus),
    /// The agent does not know the command.
    NoSuchCommand,
    /// The agent runs another command.
    Busy(String),
    /// The action failed.
    Failed(ActionError),
}

/// Why an action failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionError {
    /// One sentence that names the peer and the action.
    pub text: String,
    /// Whether a retry can succeed.
    pub retryable: bool,
    /// The peer could not be reached (as opposed to: it answered with an error).
    pub unreachable: bool,
}
