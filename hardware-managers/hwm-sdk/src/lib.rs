//! A hardware manager knows one kind of hardware: what steps it offers and how to run them.
//!
//! The agent asks every manager how well it supports the machine ([`HardwareManager::evaluate`]),
//! merges the steps of all that do, and runs a step in the manager that advertised it, never by
//! name capture. Steps block: the agent runs them on a thread of their own and watches
//! [`StepContext`] from outside.

mod declaration;
pub mod protocol;

pub use declaration::{Argument, Declaration, advertise};

use agent_protocol::inventory::Inventory;
use agent_protocol::progress::Progress;
use agent_protocol::step::Step;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

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

/// What a running step shares with the agent: progress out, cancellation in.
#[derive(Debug, Clone, Default)]
pub struct StepContext {
    progress: Arc<Mutex<Progress>>,
    cancelled: Arc<AtomicBool>,
}

impl StepContext {
    /// A fresh context with empty progress.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replace the progress that heartbeats and command status show.
    pub fn report(&self, progress: Progress) {
        *self.progress.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = progress;
    }

    /// Change the progress in place.
    pub fn update(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    }

    /// The progress as it stands.
    pub fn progress(&self) -> Progress {
        self.progress.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Ask the step to stop at the next safe point.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Whether the step has been asked to stop. Long work checks this at least once a second.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }
}

/// A hardware manager.
pub trait HardwareManager: Send + Sync {
    /// Name, unique in the agent: `generic_hardware_manager`.
    fn name(&self) -> &str;

    /// Version; a change while a node is being cleaned restarts automated cleaning.
    fn version(&self) -> &str;

    /// How well this manager supports the machine. Must be quick: no device is opened for long here.
    fn evaluate(&self, inventory: &Inventory) -> Support;

    /// The steps it offers on this machine.
    fn steps(&self, kind: StepKind, inventory: &Inventory) -> Vec<Step>;

    /// Run one of its steps to the end, blocking. Must be idempotent unless its step says otherwise.
    fn run(&self, call: &StepCall, context: &StepContext) -> Result<StepOutcome, StepError>;
}
