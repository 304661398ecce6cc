//! Lists of steps.

use super::{Examination, ScenarioResult};
use crate::session::Session;
use crate::{Rule, Violation};
use agent_protocol::schema;
use hwm_sdk::StepKind;
use hwm_sdk::protocol::{
    Code, INTERFACES, Run, RunParams, StepOffer, Steps, StepsAnswer, StepsParams, bad_step_name,
    is_reserved_step,
};
use serde_json::{Map, json};
use std::collections::BTreeSet;

fn asked(session: &mut Session, examination: &Examination, kind: StepKind) -> Result<StepsAnswer, Violation> {
    let within = examination.plan.deadlines.steps;
    let answer = session.call::<Steps>(&StepsParams { kind }, within, Rule::StepsDeadline, Rule::Steps)?;
    answer.map_err(|error| Violation::new(Rule::Steps, format!("steps of {kind:?} were refused: {error}")))
}

/// The steps of a kind, looked at one by one.
pub(super) fn listed(
    session: &mut Session,
    examination: &mut Examination,
    kind: StepKind,
) -> Result<Vec<StepOffer>, Violation> {
    let answer = asked(session, examination, kind)?;
    examination.judge(Rule::StepsDeadline, None)?;
    let steps = answer.steps;
    let mut names = BTreeSet::new();
    let twice = steps.iter().find(|step| !names.insert(&step.step));
    let bad = steps.iter().find_map(|step| bad_step_name(&step.step));
    let bad =
        bad.or_else(|| twice.map(|step| format!("step {:?} is twice in the list of {kind:?}", step.step)));
    examination.judge(Rule::StepNames, bad)?;
    for step in &steps {
        let reserved = !examination.plan.in_tree && is_reserved_step(&step.interface, &step.step);
        let reserved = reserved.then(|| format!("{}.{} is reserved", step.interface, step.step));
        examination.judge(Rule::ReservedSteps, reserved)?;
        let unknown = !INTERFACES.contains(&step.interface.as_str());
        let unknown = unknown.then(|| format!("step {:?} has no interface {:?}", step.step, step.interface));
        examination.judge(Rule::Steps, unknown)?;
        examination.judge(Rule::Schemas, bad_schema(step))?;
    }
    examination.judge(Rule::Steps, None)?;
    Ok(steps)
}

fn bad_schema(step: &StepOffer) -> Option<String> {
    let arguments =
        step.argsinfo.iter().filter_map(|(name, info)| Some((name.as_str(), info.schema.as_ref()?)));
    let result = step.result_schema.as_ref().map(|schema| ("result", schema));
    let fault = arguments.chain(result).find_map(|(name, schema)| schema::understood(name, schema).err())?;
    Some(format!("step {:?}: {fault}", step.step))
}

/// All lists, twice.
pub(crate) fn asked_again(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    examination.get_ready(session)?;
    for kind in StepKind::ALL {
        let first = asked(session, examination, kind)?;
        let second = asked(session, examination, kind)?;
        let seen = (first != second).then(|| format!("the steps of {kind:?} are not those of a moment ago"));
        examination.judge(Rule::StepsRepeat, seen)?;
    }
    Ok(())
}

/// A step that no manager offers.
pub(crate) fn unknown_step(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    examination.get_ready(session)?;
    let params = RunParams {
        kind: StepKind::Clean,
        interface: "vendor".into(),
        step: "of_a_later_version".into(),
        args: Map::new(),
        node: json!({}),
        checkpoint: None,
    };
    let rule = Rule::UnknownStep;
    let answer = session.call::<Run>(&params, examination.plan.deadlines.run, Rule::RunDeadline, rule)?;
    let seen = match answer {
        Ok(_) => Some("it ran a step that it does not offer".to_owned()),
        Err(error) => (!error.is(Code::Step)).then(|| format!("the refusal is {error}")),
    };
    examination.judge(rule, seen)
}
