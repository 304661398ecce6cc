//! A node as the commands that follow it read it. What an older server leaves out is simply absent.

use agent_protocol::progress::Progress;
use agent_protocol::record::EraseReport;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What is read of a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeView {
    /// Id.
    pub uuid: String,
    /// Name.
    pub name: Option<String>,
    /// Where it stands.
    pub provision_state: Option<String>,
    /// Where it is going.
    pub target_provision_state: Option<String>,
    /// Power as last read.
    pub power_state: Option<String>,
    /// Power as asked for.
    pub target_power_state: Option<String>,
    /// What failed last.
    pub last_error: Option<String>,
    /// Out of service.
    pub maintenance: bool,
    /// Why.
    pub maintenance_reason: Option<String>,
    /// Not to enter service again. Ironic shows null after a removal.
    pub retired: Option<bool>,
    /// Current step of a cleaning, or the one that failed; `{}` for none.
    pub clean_step: Value,
    /// The same of a deployment.
    pub deploy_step: Value,
    /// The same of a service.
    pub service_step: Value,
    /// Kept by the controller for itself.
    pub driver_internal_info: Internal,
}

/// What is read of `driver_internal_info`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Internal {
    /// The plan of the cleaning under way; Ironic's name for it.
    #[serde(deserialize_with = "tolerant")]
    pub clean_steps: Option<Vec<Step>>,
    /// Index of the current step in it.
    #[serde(deserialize_with = "tolerant")]
    pub clean_step_index: Option<usize>,
    /// The plan of the deployment under way.
    #[serde(deserialize_with = "tolerant")]
    pub deploy_steps: Option<Vec<Step>>,
    /// Index of the current step in it.
    #[serde(deserialize_with = "tolerant")]
    pub deploy_step_index: Option<usize>,
    /// The plan of the service under way.
    #[serde(deserialize_with = "tolerant")]
    pub service_steps: Option<Vec<Step>>,
    /// Index of the current step in it.
    #[serde(deserialize_with = "tolerant")]
    pub service_step_index: Option<usize>,
    /// Anneal's own part; absent on Ironic.
    pub anneal: Anneal,
}

/// What Anneal reports of a node beyond Ironic.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Anneal {
    /// How far the running command is.
    #[serde(deserialize_with = "tolerant")]
    pub progress: Option<Progress>,
    /// What is awaited.
    #[serde(deserialize_with = "tolerant")]
    pub wait: Option<Wait>,
    /// The run under way or the last one.
    #[serde(deserialize_with = "tolerant")]
    pub run: Option<Run>,
}

/// What is awaited.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Wait {
    /// One sentence.
    pub reason: String,
    /// After this the controller acts on the silence.
    #[serde(deserialize_with = "instant")]
    pub deadline: Option<String>,
}

/// A run of steps.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Run {
    /// How the steps ended.
    pub results: Vec<StepResult>,
}

/// A step of the plan.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Step {
    /// Interface.
    pub interface: String,
    /// Name.
    pub step: String,
}

/// How a step ended.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct StepResult {
    /// Index into the plan.
    pub index: usize,
    /// `deploy.erase_devices`
    pub step: Option<String>,
    /// When it was stored.
    #[serde(deserialize_with = "instant")]
    pub at: Option<String>,
    /// The agent's result.
    pub result: Value,
    /// Why it failed.
    pub error: Option<String>,
    /// Id of its certificate; only steps that erase have one.
    pub certificate: Option<String>,
    /// Why it has none.
    pub uncertified: Option<String>,
}

impl StepResult {
    /// The erase records in the result: as they are, or in what IPA puts around them.
    pub fn report(&self) -> Option<EraseReport> {
        let around = ["clean_result", "deploy_result", "service_result"];
        let inner = around.iter().find_map(|key| self.result.get(key)).unwrap_or(&self.result);
        inner.get("disks")?;
        serde_json::from_value(inner.clone()).ok()
    }
}

/// A part that a newer controller may shape differently must not hide the rest of the node.
fn tolerant<'de, D: Deserializer<'de>, T: for<'a> Deserialize<'a>>(from: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

/// A time as text; a number counts microseconds since 1970.
fn instant<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => Some(text),
        Value::Number(number) => number
            .as_i64()
            .and_then(|micros| {
                time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).ok()
            })
            .and_then(|time| time.format(&time::format_description::well_known::Rfc3339).ok()),
        _ => None,
    })
}

impl NodeView {
    /// The view of a node's body.
    pub fn of(body: &Value) -> Self {
        serde_json::from_value(body.clone()).unwrap_or_else(|_| {
            // One field of a strange type; the states are what matters.
            let text = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
            Self {
                uuid: text("uuid").unwrap_or_default(),
                name: text("name"),
                provision_state: text("provision_state"),
                target_provision_state: text("target_provision_state"),
                power_state: text("power_state"),
                target_power_state: text("target_power_state"),
                last_error: text("last_error"),
                ..Self::default()
            }
        })
    }

    /// Name, or the id of a node without one.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.uuid)
    }

    /// Provision state; `unknown` if the server does not report it.
    pub fn state(&self) -> &str {
        self.provision_state.as_deref().unwrap_or("unknown")
    }

    /// Something failed and an operator is needed.
    pub fn has_failed(&self) -> bool {
        self.state() == "error" || self.state().ends_with(" failed")
    }

    /// Nothing happens without a request.
    pub fn is_stable(&self) -> bool {
        matches!(self.state(), "enroll" | "manageable" | "available" | "active" | "error" | "rescue")
    }

    /// Held for an operator in the middle of a run.
    pub fn is_held(&self) -> bool {
        self.state().ends_with(" hold")
    }

    /// `deploy.erase_devices` of the current step, with `2/3` where the plan is known.
    pub fn step(&self) -> Option<String> {
        let info = &self.driver_internal_info;
        let runs = [
            (&self.clean_step, info.clean_step_index, &info.clean_steps),
            (&self.deploy_step, info.deploy_step_index, &info.deploy_steps),
            (&self.service_step, info.service_step_index, &info.service_steps),
        ];
        runs.into_iter().find_map(|(step, index, plan)| {
            let text = |key: &str| step.get(key).and_then(Value::as_str);
            let label = format!("{}.{}", text("interface")?, text("step")?);
            Some(match index.zip(plan.as_ref().map(Vec::len)) {
                Some((index, count)) => format!("{label} ({}/{count})", index + 1),
                None => label,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_of_plain_ironic_is_enough() {
        let node = NodeView::of(&json!({
            "uuid": "u", "name": null, "provision_state": "clean failed", "retired": null, "clean_step": {},
            "driver_internal_info": {"agent_url": "https://x"}
        }));
        assert_eq!((node.label(), node.state(), node.step()), ("u", "clean failed", None));
        assert!(node.has_failed() && !node.is_stable());
    }

    #[test]
    fn a_part_of_another_shape_does_not_hide_the_rest() {
        let node = NodeView::of(&json!({
            "uuid": "u", "name": "n", "provision_state": "clean wait",
            "clean_step": {"interface": "deploy", "step": "erase_devices"},
            "driver_internal_info": {
                "clean_steps": [{"interface": "deploy", "step": "erase_devices"}, {}], "clean_step_index": 0,
                "anneal": {
                    "progress": {"disks": [{"device": 7}]},
                    "wait": {"reason": "the agent runs a step", "deadline": 1_800_000_000_000_000_i64}
                }
            }
        }));
        assert_eq!(node.step().as_deref(), Some("deploy.erase_devices (1/2)"));
        let anneal = node.driver_internal_info.anneal;
        assert_eq!(anneal.progress, None);
        assert_eq!(anneal.wait.unwrap().deadline.as_deref(), Some("2027-01-15T08:00:00Z"));
    }

    #[test]
    fn the_step_of_each_kind_of_run_is_shown() {
        for kind in ["clean", "deploy", "service"] {
            let mut body = json!({"uuid": "u", "clean_step": {}, "deploy_step": {}, "service_step": {}});
            body[format!("{kind}_step")] = json!({"interface": "raid", "step": "create"});
            assert_eq!(NodeView::of(&body).step().as_deref(), Some("raid.create"), "{kind}");
            body["driver_internal_info"] =
                json!({format!("{kind}_steps"): [{}, {}, {}], format!("{kind}_step_index"): 2});
            assert_eq!(NodeView::of(&body).step().as_deref(), Some("raid.create (3/3)"), "{kind}");
        }
    }

    #[test]
    fn erase_records_are_found_in_both_shapes() {
        let report = json!({"disks": [
            {"device": "/dev/sda", "size": 1, "outcome": "erased", "bytes_erased": 1}]});
        let bare = StepResult { result: report.clone(), ..StepResult::default() };
        let wrapped = StepResult { result: json!({"clean_result": report.clone()}), ..StepResult::default() };
        assert_eq!(bare.report().unwrap().disks.len(), 1);
        assert_eq!(bare.report(), wrapped.report());
        let service = StepResult { result: json!({"service_result": report}), ..StepResult::default() };
        assert_eq!(bare.report(), service.report());
        let other = StepResult { result: json!({"clean_result": null}), ..StepResult::default() };
        assert_eq!(other.report(), None);
    }
}
