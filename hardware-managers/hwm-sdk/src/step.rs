//! A step to be run, and its result.

use agent_protocol::inventory::Inventory;
use agent_protocol::step::Step;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

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
