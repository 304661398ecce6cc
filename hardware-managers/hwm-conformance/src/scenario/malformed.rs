//! Messages that an agent of this version never sends.

use super::{Examination, ScenarioResult};
use crate::Rule;
use crate::session::Session;
use hwm_sdk::protocol::Code;
use serde_json::json;

/// Calls of a later version.
pub(crate) fn unknown_calls(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    examination.hello(session)?;
    let within = examination.plan.deadlines.steps;
    let rule = Rule::UnknownMethod;
    let answer =
        session.blaming(rule, |session| session.call_raw("a_later_version", &json!({}), within, rule))?;
    let seen = match answer {
        Ok(_) => Some("it answered a method that does not exist".to_owned()),
        Err(error) => (!error.is(Code::Method)).then(|| format!("the refusal is {error}")),
    };
    examination.judge(rule, seen)?;
    let rule = Rule::UnknownNotification;
    session.blaming(rule, |session| {
        session.say(r#"{"jsonrpc":"2.0","method":"a_later_version","params":{"id":1}}"#)?;
        examination.detect(session)
    })?;
    examination.judge(rule, None)
}

/// Lines that are no messages.
pub(crate) fn unreadable_lines(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    examination.hello(session)?;
    let rule = Rule::BadLine;
    let within = examination.plan.deadlines.steps;
    for (line, code) in [
        ("hello", Code::Parse),
        (r#"{"jsonrpc":"2.0","id":1,"method":"#, Code::Parse),
        ("[]", Code::Invalid),
        (r#"{"jsonrpc":"2.0"}"#, Code::Invalid),
    ] {
        let error = session.blaming(rule, |session| {
            session.say(line)?;
            session.wait_refusal(within)
        })?;
        let seen = match error {
            None => Some(format!("{line:?} was not answered within {within:?}")),
            Some(error) => (!error.is(code)).then(|| format!("the refusal of {line:?} is {error}")),
        };
        examination.judge(rule, seen)?;
    }
    session.blaming(rule, |session| examination.detect(session)).map(drop)
}

/// Params that are not those of the method.
pub(crate) fn wrong_params(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    examination.hello(session)?;
    let rule = Rule::BadParams;
    let within = examination.plan.deadlines.steps;
    for (method, params) in [
        ("detect", json!({})),
        ("steps", json!({"kind": "a_later_version"})),
        ("steps", json!({})),
        ("run", json!({"kind": "clean"})),
        ("erase_capabilities", json!({"disk": 7})),
    ] {
        let answer = session.blaming(rule, |session| session.call_raw(method, &params, within, rule))?;
        let seen = match answer {
            Ok(_) => Some(format!("{method} was answered with the params {params}")),
            Err(error) => {
                (!error.is(Code::Params)).then(|| format!("the refusal of {method} with {params} is {error}"))
            }
        };
        examination.judge(rule, seen)?;
    }
    Ok(())
}

/// A cancel that is too late, and one of nothing.
pub(crate) fn late_cancel(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    examination.hello(session)?;
    session.blaming(Rule::LateCancel, |session| {
        session.cancel(1)?;
        session.cancel(4_000_000)?;
        examination.detect(session)
    })?;
    examination.judge(Rule::LateCancel, None)
}
