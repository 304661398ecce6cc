//! A hardware manager knows one kind of hardware: what steps it offers and how to run them.
//!
//! The agent asks every manager how well it supports the machine ([`HardwareManager::evaluate`]),
//! merges the steps of all that do, and runs a step in the manager that advertised it, never by
//! name capture. Steps block: the agent runs them on a thread of their own and watches
//! [`StepContext`] from outside.
//!
//! A manager in a program of its own calls [`serve`] in its `main`, and speaks the [`protocol`] with the agent.

mod arguments;
mod context;
mod declaration;
pub mod protocol;
mod serve;

pub use arguments::checked_arguments;
pub use context::{Host, StepContext};
pub use declaration::{Argument, Declaration, advertise};
pub use serve::{ServeError, serve, serve_on};

use agent_protocol::inventory::{Disk, Inventory};
use agent_protocol::step::Step;
use protocol::{Claim, EraseCapabilities, EraseParams, InventoryPatch, Priority, ProviderRecord, Quirk};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// How well a manager supports a machine. Larger wins when two managers offer one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// Not this machine.
    None = 0,
    /// Works everywhere.
    Generic = 1,
    /// Made for this hardware, by Anneal.
    Mainline = 2,
    /// Made for this hardware, by its vendor or operator.
    ServiceProvider = 3,
}

/// Which list of steps is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Cleaning.
    Clean,
    /// Deployment.
    Deploy,
    /// Service of an active node.
    Service,
    /// Inspection.
    Inspect,
}

impl StepKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Clean, Self::Deploy, Self::Service, Self::Inspect];
}

/// A step to be run. The agent has checked its arguments against the advertised `argsinfo`, where there is one.
#[derive(Debug, Clone)]
pub struct StepCall {
    /// In which list the step was found.
    pub kind: StepKind,
    /// The step as the controller sent it.
    pub step: Step,
    /// `step.args`, empty when there were none.
    pub args: Map<String, Value>,
    /// The node as the controller sent it with the command (Ironic's shape).
    pub node: Value,
    /// The hardware, as it was when the controller last asked for the steps.
    pub inventory: Arc<Inventory>,
}

/// How a step ended when it did not fail.
#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome {
    /// Done, with a result for the controller.
    Done(Value),
    /// Done, and the node must be rebooted before the next step.
    RebootRequested(Value),
}

/// Why a step failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StepError {
    /// The manager has no such step.
    #[error("hardware manager {manager} has no step {step:?}")]
    Unknown {
        /// Manager.
        manager: String,
        /// Step.
        step: String,
    },
    /// An argument is missing, unknown or of the wrong kind.
    #[error("argument {name:?}: {problem}")]
    Argument {
        /// Its name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The step was cancelled; `report` says what was done until then.
    #[error("cancelled")]
    Cancelled {
        /// What was done.
        report: Value,
    },
    /// The work failed. `report` keeps what is known, for example the records of the disks that did succeed.
    #[error("{reason}")]
    Failed {
        /// One line for the operator, naming the thing.
        reason: String,
        /// Evidence.
        report: Value,
    },
    /// The manager leaves this device to another; nothing was touched.
    #[error("{reason}")]
    Declined {
        /// Why.
        reason: String,
    },
}

impl StepError {
    /// An argument that is not as its schema says, in the words of [`agent_protocol::schema::check`], which
    /// begin with its name.
    pub fn argument(name: &str, problem: &str) -> Self {
        let rest = problem.strip_prefix(name).unwrap_or(problem);
        Self::Argument { name: name.to_owned(), problem: rest.trim_start_matches(['.', ' ']).to_owned() }
    }
}

/// A hardware manager. Those in the agent and those behind [`serve`] are the same.
///
/// What is not implemented is not there: no claims, nothing to get ready, nothing to add to the inventory, no disk that
/// it erases in its own way.
pub trait HardwareManager: Send + Sync {
    /// Name, unique in the agent: `generic_hardware_manager`.
    fn name(&self) -> &str;

    /// Version; a change while a node is being cleaned restarts automated cleaning.
    fn version(&self) -> &str;

    /// Who made it.
    fn vendor(&self) -> &str {
        "Anneal"
    }

    /// How well this manager supports the machine. Must be quick: no device is opened for long here.
    fn evaluate(&self, inventory: &Inventory) -> Support;

    /// Devices of this machine that it cares for. Quick, as [`HardwareManager::evaluate`].
    fn claims(&self, _inventory: &Inventory) -> Vec<Claim> {
        Vec::new()
    }

    /// What the agent must leave out on machines of some kinds. Quick, as [`HardwareManager::evaluate`].
    fn quirks(&self, _inventory: &Inventory) -> Vec<Quirk> {
        Vec::new()
    }

    /// Get ready for a machine that it supports. Slow things belong here; up to a minute.
    ///
    /// # Errors
    /// Its steps are not offered then.
    fn init(&self, _context: &StepContext) -> Result<(), StepError> {
        Ok(())
    }

    /// What it knows of the hardware that the agent cannot see.
    ///
    /// # Errors
    /// The inventory stays without it then.
    fn inventory(&self, _context: &StepContext) -> Result<InventoryPatch, StepError> {
        Ok(InventoryPatch::default())
    }

    /// The steps it offers on this machine.
    fn steps(&self, kind: StepKind, inventory: &Inventory) -> Vec<Step>;

    /// Other priorities for steps that it does not own.
    fn priorities(&self, _kind: StepKind, _inventory: &Inventory) -> Vec<Priority> {
        Vec::new()
    }

    /// Run one of its steps to the end, blocking. Must be idempotent unless its step says otherwise.
    ///
    /// # Errors
    /// Why it did not go well.
    fn run(&self, call: &StepCall, context: &StepContext) -> Result<StepOutcome, StepError>;

    /// What one of its steps would do to this machine, as JSON, changing nothing: what [`HardwareManager::run`] would
    /// refuse is in the answer.
    ///
    /// # Errors
    /// [`StepError::Declined`] where it does not tell, and as the step itself for arguments that are wrong.
    fn plan(&self, call: &StepCall) -> Result<Value, StepError> {
        let reason =
            format!("hardware manager {} does not tell what {:?} would do", self.name(), call.step.step);
        Err(StepError::Declined { reason })
    }

    /// How it can erase this disk. Decline every disk that is not known for certain.
    fn erase_capabilities(&self, _disk: &Disk) -> EraseCapabilities {
        EraseCapabilities::default()
    }

    /// Erase a disk with a method that [`HardwareManager::erase_capabilities`] told, blocking. The caller reads the
    /// disk back.
    ///
    /// # Errors
    /// [`StepError::Declined`] when nothing was written and the generic manager shall do it.
    fn erase(&self, erase: &EraseParams, _context: &StepContext) -> Result<ProviderRecord, StepError> {
        let reason = format!("hardware manager {} does not erase {}", self.name(), erase.disk.name);
        Err(StepError::Declined { reason })
    }
}
