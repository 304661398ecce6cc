//! Running a step: with wrong arguments, to its end, again, from its checkpoint, cancelled, and deserted.

use super::{Examination, Runnable, ScenarioResult};
use crate::incoming::Answer;
use crate::session::{Session, described};
use crate::{Rule, Violation};
use agent_protocol::schema;
use hwm_sdk::protocol::{Code, Method, Run, RunAnswer, RunParams};
use serde_json::{Value, json};
use std::time::Duration;

/// A step that says nothing is cancelled after this.
const SIGN: Duration = Duration::from_millis(300);

fn params(run: &Runnable) -> RunParams {
    RunParams {
        kind: run.kind,
        interface: run.offer.interface.clone(),
        step: run.offer.step.clone(),
        args: run.args.clone(),
        node: json!({"uuid": "62f4f467-864a-40c0-9b53-0820d3eb102f", "name": "conformance"}),
        checkpoint: None,
    }
}

fn call(
    session: &mut Session,
    examination: &Examination,
    params: &RunParams,
) -> Result<Answer<RunAnswer>, Violation> {
    session.call::<Run>(params, examination.plan.deadlines.run, Rule::RunDeadline, Rule::Run)
}

/// Arguments that the agent would not let through.
pub(crate) fn wrong_arguments(
    session: &mut Session,
    examination: &mut Examination,
    run: &Runnable,
) -> ScenarioResult {
    examination.get_ready(session)?;
    let step = &run.offer.step;
    let mut wrong = vec![("an unknown argument".to_owned(), "of_a_later_version".to_owned(), Some(json!(1)))];
    for (name, info) in &run.offer.argsinfo {
        if info.required {
            wrong.push((format!("no {name}"), name.clone(), None));
        }
        let bad = [json!({"a": []}), json!(-7.5), Value::Null].into_iter();
        let bad = bad.filter(|value| {
            info.schema.as_ref().is_some_and(|expected| schema::check(name, expected, value).is_err())
        });
        wrong.extend(bad.map(|value| (format!("{name} {value}"), name.clone(), Some(value))));
    }
    for (what, name, value) in wrong {
        let mut params = params(run);
        match value {
            Some(value) => drop(params.args.insert(name, value)),
            None => drop(params.args.remove(&name)),
        }
        let seen = match call(session, examination, &params)? {
            Ok(_) => Some(format!("step {step:?} ran with {what}")),
            Err(error) => (!error.is(Code::Argument))
                .then(|| format!("step {step:?}: the refusal of {what} is {error}")),
        };
        examination.judge(Rule::Arguments, seen)?;
    }
    Ok(())
}

fn good(examination: &mut Examination, run: &Runnable, answer: &RunAnswer) -> ScenarioResult {
    if let Some(expected) = &run.offer.result_schema {
        let fault = schema::check("result", expected, &answer.result).err();
        let fault = fault.map(|fault| format!("step {:?}: {fault}", run.offer.step));
        examination.judge(Rule::ResultSchema, fault)?;
    }
    Ok(())
}

/// To the end, and again if it says that it can.
pub(crate) fn to_the_end(
    session: &mut Session,
    examination: &mut Examination,
    run: &Runnable,
) -> ScenarioResult {
    examination.get_ready(session)?;
    let step = &run.offer.step;
    let first = call(session, examination, &params(run))?;
    examination.judge(Rule::RunDeadline, None)?;
    if first.as_ref().is_err_and(|error| run.excuses(error)) {
        return Ok(());
    }
    let refused = |error| format!("step {step:?} with good arguments: {error}");
    examination.judge(Rule::Run, first.as_ref().err().map(refused))?;
    if let Ok(answer) = &first {
        good(examination, run, answer)?;
    }
    if let Some((_, saved)) = session.incoming.checkpoint.clone() {
        examination.checkpoints.insert(step.clone(), saved);
    }
    if run.offer.idempotent {
        let second = call(session, examination, &params(run))?;
        examination.judge(Rule::Idempotent, second.as_ref().err().map(refused))?;
        if let Ok(answer) = &second {
            good(examination, run, answer)?;
        }
    }
    Ok(())
}

/// From the checkpoint of [`to_the_end`], in a new process.
pub(crate) fn resumed(
    session: &mut Session,
    examination: &mut Examination,
    run: &Runnable,
) -> ScenarioResult {
    let Some(checkpoint) = examination.checkpoints.get(&run.offer.step).cloned() else { return Ok(()) };
    if !run.offer.idempotent {
        return Ok(());
    }
    examination.get_ready(session)?;
    let params = RunParams { checkpoint: Some(checkpoint), ..params(run) };
    let rule = Rule::Resume;
    let answer = session.blaming(rule, |session| call(session, examination, &params))?;
    let refused = |error| format!("step {:?} from its checkpoint: {error}", run.offer.step);
    examination.judge(rule, answer.as_ref().err().map(refused))?;
    answer.map_or(Ok(()), |answer| good(examination, run, &answer))
}

/// Cancelled as soon as it shows that it works.
pub(crate) fn cancelled(
    session: &mut Session,
    examination: &mut Examination,
    run: &Runnable,
) -> ScenarioResult {
    if !run.offer.abortable {
        return Ok(());
    }
    examination.get_ready(session)?;
    let id = session.ask::<Run>(&params(run))?;
    session.wait_sign(id, SIGN)?;
    session.cancel(id)?;
    let rule = Rule::Cancel;
    let grace = examination.plan.deadlines.grace;
    let answer = session.blaming(rule, |session| session.wait(id, grace, rule, Run::NAME))?;
    let seen = match answer {
        Ok(raw) => described::<Run>(&raw, Rule::Run).map(|_| None)?,
        Err(error) if run.excuses(&error) => return Ok(()),
        Err(error) => (!error.is(Code::Cancelled))
            .then(|| format!("step {:?} answered its cancel with {error}", run.offer.step)),
    };
    examination.judge(rule, seen)?;
    session.blaming(Rule::LateCancel, |session| {
        session.cancel(id)?;
        examination.detect(session)
    })?;
    examination.judge(Rule::LateCancel, None)
}

/// The agent dies while it runs.
pub(crate) fn closed(session: &mut Session, examination: &mut Examination, run: &Runnable) -> ScenarioResult {
    examination.get_ready(session)?;
    let id = session.ask::<Run>(&params(run))?;
    session.wait_sign(id, SIGN)?;
    session.close();
    super::lifecycle::gone(session, examination)
}
