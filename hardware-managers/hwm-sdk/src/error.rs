//! Why a step failed.

use serde_json::Value;

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
    /// The step has done its part, and the machine does the rest when it boots. The controller reboots the node and runs the step again,
    /// which then finds `checkpoint` in its context and judges what came of it. Only an idempotent step of a manager in the
    /// agent may say so. For any other, and for a controller that cannot repeat it, the step has failed for this `reason`.
    #[error("{reason}")]
    NeedsReboot {
        /// One line for the operator, naming the thing.
        reason: String,
        /// For the step when it runs again; not null.
        checkpoint: Value,
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
