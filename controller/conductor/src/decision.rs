//! The vocabulary of deciding: what is known, what is to be done, what came of it.

use agent_protocol::command::CommandStatus;
use agent_protocol::step::AdvertisedSteps;
use model::{Catalogue, Contact, Event, Node, PlannedStep, PowerState, PowerTarget, Timestamp, Wait};

/// Everything a decision may look at.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The node as stored.
    pub node: Node,
    /// Contact with its agent as stored.
    pub contact: Contact,
    /// Now.
    pub now: Timestamp,
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
    /// Do one deed; [`crate::states::absorb`] turns its outcome into a change.
    Act(Deed),
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
    pub catalogue: Option<Catalogue>,
}

impl Change {
    /// A change of the node alone.
    pub fn of(node: Node) -> Self {
        Self { node, events: Vec::new(), forget_agent: false, catalogue: None }
    }

    /// With an event.
    #[must_use]
    pub fn telling(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }
}

/// One effect on the world. Each may be repeated without harm.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// Check that the BMC can be used, and read the power state.
    VerifyBmc,
    /// Read the power state.
    ReadPower,
    /// If the node is not in the state that the target leads to (or the target is a reboot), ask for it;
    /// then read the power state.
    SetPower(PowerTarget),
    /// Make the next boot a network boot.
    SetBootDevice,
    /// Ask the agent for its clean steps.
    AskSteps,
    /// Send the command with this id, unless the agent has it already.
    SendStep {
        /// Id of the command.
        command_id: String,
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
}

/// What came of a deed.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Power state as read after the deed.
    Power(PowerState),
    /// Done, nothing to tell.
    Done,
    /// Steps of the agent.
    Steps(AdvertisedSteps),
    /// A command as the agent tells it.
    Command(CommandStatus),
    /// The agent does not know the command.
    NoSuchCommand,
    /// The agent is busy with something else.
    Busy(String),
    /// It did not work.
    Failed(Trouble),
}

/// Why a deed did not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// One sentence that names the peer and the deed.
    pub text: String,
    /// Whether trying again can help.
    pub retryable: bool,
    /// The peer could not be reached at all (as opposed to: it answered with an error).
    pub unreachable: bool,
}
