//! The vocabulary of deciding: what is known, what is to be done, what came of it.

use crate::notary::Proof;
use agent_protocol::command::CommandStatus;
use agent_protocol::step::AdvertisedSteps;
use model::run::PersistentBoot;
use model::{
    Abilities, Catalogue, Contact, Event, Health, Inventory, Node, PlannedStep, Port, PowerState,
    PowerTarget, Resource, RunKind, StepKind, Timestamp, Wait,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::Inspected;

/// Everything a decision may look at.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The node as stored.
    pub node: Node,
    /// Contact with its agent as stored.
    pub contact: Contact,
    /// What the interfaces of its driver can do; else why they cannot be used.
    pub abilities: Result<Arc<Abilities>, String>,
    /// The in-band steps of the run's kind as they were told last; only looked up at its start.
    pub catalogue: Option<Catalogue>,
    /// The inventory that was told last; only looked up while one is awaited.
    pub inventory: Option<Inventory>,
    /// What inspection rules and ports need; only looked up when an inventory is there or asked for.
    pub rules: Rules,
    /// Since when agents can be heard: this controller's start. Who was silent while nobody listened is not lost.
    pub listening_since: Timestamp,
    /// Now.
    pub now: Timestamp,
}

impl Snapshot {
    /// Without what is only looked up in some states.
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

/// The inspection rules, and what they work on beside the node and its inventory.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// All of them, oldest first.
    pub rules: Vec<Resource>,
    /// Ports of the node.
    pub ports: Vec<Port>,
}

/// What to do next for a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Nothing until `wake_at` or the bell. The wait is stored if it is news.
    Sleep {
        /// What is awaited.
        wait: Option<Wait>,
        /// When to look again at the latest.
        wake_at: Option<Timestamp>,
    },
    /// Store a change; no effect outside is needed.
    Record(Box<Change>),
    /// Do one action; [`crate::stages::apply_outcome`] turns its outcome into a change.
    Act(Action),
    /// Store a change that says that the action begins, then do it: for actions that must not be done twice.
    /// Whoever finds the change stored without an outcome knows that the action was interrupted.
    Begin(Box<Change>, Action),
}

/// A change to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The node as it is to be.
    pub node: Node,
    /// Events that tell why.
    pub events: Vec<Event>,
    /// The boot of the agent is over: forget its token and address. Stored before the node.
    pub forget_agent: bool,
    /// Steps that were learnt. Stored before the node.
    pub catalogues: Vec<(StepKind, Catalogue)>,
    /// What an inspection changes beside the node; stored with it.
    pub inspected: Option<Box<Inspected>>,
    /// What the agent has proven of the step that ended: becomes a certificate, stored with the node.
    pub evidence: Option<Box<Proof>>,
}

impl Change {
    /// A change of the node alone.
    pub fn of(node: Node) -> Self {
        Self {
            node,
            events: Vec::new(),
            forget_agent: false,
            catalogues: Vec::new(),
            inspected: None,
            evidence: None,
        }
    }

    /// Whether nothing but the node is to be stored.
    pub fn is_of_the_node_alone(&self) -> bool {
        !self.forget_agent
            && self.catalogues.is_empty()
            && self.inspected.is_none()
            && self.evidence.is_none()
    }

    /// With an event.
    #[must_use]
    pub fn telling(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }
}

/// One effect on the world. Each may be repeated without harm, except [`Action::RunStep`].
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Check that the BMC can be used, and read the power state.
    VerifyBmc,
    /// Read the power state.
    ReadPower,
    /// Read the power state, and the health of the hardware where the BMC tells it.
    ReadState,
    /// If the node is not in the state that the target leads to (or the target is a reboot), ask for it;
    /// then read the power state.
    SetPower(PowerTarget),
    /// Read what the node boots from every time.
    ReadBootDevice,
    /// Make the next boot a network boot.
    SetBootDevice,
    /// Make every boot one from this device.
    RestoreBootDevice(PersistentBoot),
    /// Ask the agent for its steps: this kind must be told, the others are taken along.
    AskSteps(StepKind),
    /// Run a step of an interface in the controller.
    RunStep {
        /// Id of this execution.
        command_id: String,
        /// Kind of the step.
        kind: StepKind,
        /// The step.
        step: Box<PlannedStep>,
        /// It was begun before and goes on outside: only ask.
        polling: bool,
    },
    /// Ask the BMC for the inventory.
    InspectBmc,
    /// Send the command with this id, unless the agent has it already.
    SendStep {
        /// Id of the command.
        command_id: String,
        /// What it is for.
        run: RunKind,
        /// The step.
        step: Box<PlannedStep>,
    },
    /// Ask how the command with this id stands.
    AskCommand {
        /// Id of the command.
        command_id: String,
    },
    /// Tell the agent to stop the command.
    CancelCommand {
        /// Id of the command.
        command_id: String,
    },
    /// Ask the agent for the logs of its ramdisk, and keep them in the file of this name.
    CollectLogs(String),
}

/// What came of an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Power state as read after the action.
    Power(PowerState),
    /// Power state and health as read.
    State(PowerState, Option<Health>),
    /// Done, nothing to tell.
    Done,
    /// What the node boots from every time, if the BMC has been told any such thing.
    BootDevice(Option<PersistentBoot>),
    /// Steps of the agent, by kind.
    Steps(BTreeMap<StepKind, AdvertisedSteps>),
    /// A step of an interface has ended well, with this result.
    StepDone(Value),
    /// A step of an interface goes on outside, and is to be asked for again.
    StepRunning(String),
    /// The inventory as the BMC tells it.
    Inventory(Inventory),
    /// A command as the agent tells it.
    Command(CommandStatus),
    /// The agent does not know the command.
    NoSuchCommand,
    /// The agent is busy with something else.
    Busy(String),
    /// It did not work.
    Failed(ActionError),
}

/// Why an action did not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionError {
    /// One sentence that names the peer and the action.
    pub text: String,
    /// Whether trying again can help.
    pub retryable: bool,
    /// The peer could not be reached at all (as opposed to: it answered with an error).
    pub unreachable: bool,
}
