//! Steps as a manager offers them.

use super::Method;
use crate::StepKind;
use agent_protocol::step::{ArgInfo, Step};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// `steps`: which steps do you offer on this machine?
#[derive(Debug, Clone, Copy)]
pub struct Steps;

impl Method for Steps {
    const NAME: &'static str = "steps";
    const DEADLINE: Option<Duration> = Some(Duration::from_secs(5));
    type Params = StepsParams;
    type Answer = StepsAnswer;
}

/// The kind of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepsParams {
    /// Of which kind.
    pub kind: StepKind,
}

/// The steps of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepsAnswer {
    /// Steps of the manager.
    pub steps: Vec<StepOffer>,
    /// Other priorities for steps of other managers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<Priority>,
}

/// A step that a manager offers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepOffer {
    /// One of [`super::INTERFACES`] but `power`.
    pub interface: String,
    /// Its name, see [`super::bad_step_name`].
    pub step: String,
    /// Larger runs earlier, 0 never runs by itself.
    pub priority: u32,
    /// Its arguments by name, and no others.
    #[serde(default)]
    pub argsinfo: BTreeMap<String, ArgInfo>,
    /// JSON Schema of its result, as far as [`agent_protocol::schema`] goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_schema: Option<Value>,
    /// The node must be rebooted after it.
    #[serde(default)]
    pub reboot_requested: bool,
    /// It stops when it is cancelled.
    #[serde(default)]
    pub abortable: bool,
    /// It may be started again after an interruption.
    #[serde(default)]
    pub idempotent: bool,
    /// What it destroys.
    #[serde(default)]
    pub destructive: Destructive,
    /// About how long it takes, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_duration_s: Option<u64>,
}

/// What a step destroys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destructive {
    /// Nothing.
    None,
    /// Settings of the machine.
    Configuration,
    /// Data on disks. The default for a step that does not declare it.
    #[default]
    Data,
}

/// Another priority for a step that the manager does not own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Priority {
    /// Its interface.
    pub interface: String,
    /// Its name.
    pub step: String,
    /// Its new priority.
    pub priority: u32,
}

/// Members of [`Step::other`] for properties that Ironic's steps do not have.
const IDEMPOTENT: &str = "idempotent";
const DESTRUCTIVE: &str = "destructive";
const ESTIMATE: &str = "estimated_duration_s";
const RESULT: &str = "result_schema";

impl From<StepOffer> for Step {
    fn from(offer: StepOffer) -> Self {
        let mut other = Map::from_iter([
            (IDEMPOTENT.to_owned(), Value::Bool(offer.idempotent)),
            (DESTRUCTIVE.to_owned(), offer.destructive.as_str().into()),
        ]);
        other.extend(offer.estimated_duration_s.map(|seconds| (ESTIMATE.to_owned(), seconds.into())));
        other.extend(offer.result_schema.map(|schema| (RESULT.to_owned(), schema)));
        Step {
            step: offer.step,
            priority: offer.priority.into(),
            interface: offer.interface,
            reboot_requested: offer.reboot_requested,
            abortable: offer.abortable,
            argsinfo: Some(offer.argsinfo),
            args: None,
            other,
        }
    }
}

impl From<Step> for StepOffer {
    /// A priority that is no whole number of 32 bits becomes 0: such a step never runs by itself.
    fn from(mut step: Step) -> Self {
        let priority = step.priority.as_u64().and_then(|priority| u32::try_from(priority).ok());
        let destructive = step.other.remove(DESTRUCTIVE);
        StepOffer {
            interface: step.interface,
            step: step.step,
            priority: priority.unwrap_or_default(),
            argsinfo: step.argsinfo.unwrap_or_default(),
            result_schema: step.other.remove(RESULT),
            reboot_requested: step.reboot_requested,
            abortable: step.abortable,
            idempotent: step.other.get(IDEMPOTENT).and_then(Value::as_bool).unwrap_or_default(),
            destructive: destructive.and_then(|word| serde_json::from_value(word).ok()).unwrap_or_default(),
            estimated_duration_s: step.other.get(ESTIMATE).and_then(Value::as_u64),
        }
    }
}

impl Destructive {
    /// Its word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Configuration => "configuration",
            Self::Data => "data",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_offer_travels_as_a_step_and_back() {
        let offer: StepOffer = serde_json::from_value(json!({
            "interface": "raid", "step": "create", "priority": 7, "argsinfo": {"a": {"description": "d"}},
            "result_schema": {"type": "object"}, "reboot_requested": true, "abortable": true,
            "idempotent": true, "destructive": "configuration", "estimated_duration_s": 90,
        }))
        .expect("an offer");
        assert_eq!(StepOffer::from(Step::from(offer.clone())), offer);
        let silent: StepOffer =
            serde_json::from_value(json!({"interface": "raid", "step": "s", "priority": 0}))
                .expect("an offer");
        assert_eq!(
            (silent.destructive, silent.idempotent, silent.abortable),
            (Destructive::Data, false, false)
        );
    }
}
