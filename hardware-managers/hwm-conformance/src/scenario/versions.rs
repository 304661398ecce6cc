//! Agents of other versions.

use super::{Examination, ScenarioResult};
use crate::session::{Session, described};
use crate::{Rule, Violation};
use hwm_sdk::protocol::{Code, Detect, Hello, Init, Steps, VERSION};
use serde_json::{Value, json};

/// A newer agent: it offers a version more, and says more than this version knows.
pub(crate) fn newer_agent(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    let rule = Rule::UnknownFields;
    let new = json!({"some": ["thing", 1, null]});
    let mut inventory = serde_json::to_value(&examination.plan.inventory).expect("an inventory is JSON");
    inventory["a_later_version"] = new.clone();
    inventory["cpu"]["a_later_version"] = new.clone();
    let within = examination.plan.deadlines;
    session.blaming(rule, |session| {
        let mut call = |method: &str, params: Value, within| {
            let answer = session.call_raw(method, &params, within, rule)?;
            answer.map_err(|error| Violation::new(rule, format!("{method} with unknown members: {error}")))
        };
        let offered = json!([VERSION, VERSION + 1_000_000]);
        let hello = json!({"protocol_versions": offered, "agent_version": "9", "a_later_version": new});
        let chosen = described::<Hello>(&call("hello", hello, within.hello)?, Rule::Hello)?.protocol_version;
        if chosen != VERSION {
            return Err(Violation::new(Rule::Hello, format!("it chose version {chosen} of {offered}")));
        }
        let detect = json!({"inventory": inventory, "a_later_version": new});
        described::<Detect>(&call("detect", detect, within.detect)?, Rule::Detect)?;
        if examination.is_ready() {
            let init = call("init", json!({"a_later_version": new}), within.init)?;
            described::<Init>(&init, Rule::Init)?;
            let steps = call("steps", json!({"kind": "clean", "a_later_version": new}), within.steps)?;
            described::<Steps>(&steps, Rule::Steps)?;
        }
        Ok(())
    })?;
    examination.judge(rule, None)
}

/// An agent that has no version in common.
pub(crate) fn foreign_agent(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    let rule = Rule::Version;
    let params = json!({"protocol_versions": [VERSION + 1_000_000], "agent_version": "9"});
    let within = examination.plan.deadlines.hello;
    let answer = session.blaming(rule, |session| session.call_raw("hello", &params, within, rule))?;
    let seen = match answer {
        Ok(_) => Some(format!("it accepted the version {}", VERSION + 1_000_000)),
        Err(error) if !error.is(Code::Version) => Some(format!("the refusal is {error}")),
        Err(error) => {
            let supported = error.data.as_ref().map(|data| data["supported"].clone()).unwrap_or_default();
            let listed = supported.as_array().is_some_and(|versions| versions.contains(&VERSION.into()));
            (!listed).then(|| format!("the refusal says that the versions {supported} are spoken"))
        }
    };
    examination.judge(rule, seen)
}
