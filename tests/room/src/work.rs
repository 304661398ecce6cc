//! What the commands of an agent do.

use agent_protocol::step::Step;
use agentd::registry::Ending;
use hwm_sdk::StepContext;
use model::StepKind;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// What the commands of an [`Agent`](crate::Agent) do.
pub trait Work {
    /// An id for a command to which the controller gave none.
    fn fresh_id(&self) -> Uuid {
        Uuid::new_v4()
    }

    /// The result of `get_clean_steps` and of the same of the other kinds.
    fn steps(&self, kind: StepKind) -> Value;

    /// Begin a step. It ends with [`Agent::finish`](crate::Agent::finish).
    fn begin(&self, step: Begun<'_>);

    /// `finalize_rescue`, to its end.
    fn rescue(&self, params: &Map<String, Value>) -> Ending;

    /// `install_bootloader`, to its end.
    fn install_bootloader(&self, _params: &Map<String, Value>) -> Ending {
        Ending::done(None)
    }
}

/// A step that begins.
pub struct Begun<'a> {
    /// Of the command.
    pub id: &'a str,
    /// Kind of the step.
    pub kind: StepKind,
    /// Of the command: the step, the node, versions of the hardware managers.
    pub params: &'a Map<String, Value>,
    /// Progress, and whether it is cancelled.
    pub context: StepContext,
}

impl Begun<'_> {
    /// A field of the step, such as `interface`.
    pub fn field(&self, key: &str) -> &str {
        self.params.get("step").and_then(|step| step[key].as_str()).unwrap_or("?")
    }
}

/// The steps of one hardware manager of this version, as the list of a kind.
pub fn advertised(kind: StepKind, manager: &str, version: &str, steps: &[Step]) -> Value {
    json!({ kind.steps_field(): { manager: steps }, "hardware_manager_version": { manager: version } })
}

/// The result of a step command: what the step returned, and the step.
pub fn step_result(kind: StepKind, step: &Value, report: &Value) -> Value {
    json!({ kind.result_field(): report, kind.step_field(): step })
}
