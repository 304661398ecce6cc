//! The next step: written down, and handed to who runs it. The reserved steps are run here.

use super::run::View;
use super::{
    at_work, fail, in_wait, is_due, listening, out_of_band, overdue, pass, sleep_in, sleep_on, waiting,
};
use crate::decision::{Change, Decision, Snapshot};
use model::history::{EventKind, Severity};
use model::plan::Reserved;
use model::provision::Verb;
use model::raid;
use model::request::event;
use model::run::Cursor;
use model::{PlannedStep, StepResult, Timestamp};
use serde_json::Value;
use std::time::Duration;
use time::OffsetDateTime;

pub(super) fn decide(view: &View) -> Decision {
    match &view.run.cursor {
        Cursor::Hold => {
            let reason = "a user to say \"unhold\" (or \"abort\")";
            sleep_in(waiting(&view.snapshot.node, reason, None, view.snapshot.now))
        }
        Cursor::Pause { since, until } => pause(view, *since, *until),
        _ if view.run.attempts > 0 && !is_due(view.snapshot) => sleep_on(&view.snapshot.node),
        _ => next_step(view),
    }
}

fn next_step(view: &View) -> Decision {
    let now = view.snapshot.now;
    let Some(index) = view.run.next_index() else {
        let mut change = view.advance(Cursor::TearDown);
        at_work(&mut change, "every step has succeeded", now);
        return Decision::Record(Box::new(change));
    };
    let Some(planned) = view.run.plan.as_ref().and_then(|plan| plan.get(index)).cloned() else {
        let text = "internal: the next step is not in the plan";
        return Decision::Record(Box::new(fail::failed(view, text)));
    };
    // An agent of an earlier boot must not be taken for one of this run.
    let in_ramdisk = view.run.booted && view.snapshot.contact.callback_url.is_some();
    if planned.step.requires_ramdisk && !in_ramdisk {
        let mut change = view.advance(Cursor::PowerOff);
        at_work(&mut change, &format!("step {} needs the ramdisk", planned.label()), now);
        return Decision::Record(Box::new(change));
    }
    // Deterministic: the same decision taken twice names the same command.
    let command_id = format!("{}-{index}-{}-{}", view.run.id, view.run.replans, view.run.interruptions);
    if planned.step.in_band {
        let state = view.snapshot.contact.state.as_ref();
        let cursor = Cursor::Issued {
            command_id: command_id.clone(),
            at: now,
            boot_id: state.map(|state| state.boot_id.clone()),
            process_id: state.map(|state| state.process_id.clone()),
            accepted: false,
        };
        let mut change = begun(view, index, &planned, cursor, &command_id);
        match raid::wanted(&view.snapshot.node, &planned) {
            Err(why) => return Decision::Record(Box::new(not_begun(view, change, &why))),
            Ok(None) => {}
            Ok(Some(target)) => {
                change.node.driver_internal_info.insert(raid::TARGET.into(), Value::Object(target));
            }
        }
        in_wait(&mut change, "the agent runs the step", now);
        return Decision::Record(Box::new(change));
    }
    match Reserved::of(&planned.step) {
        Some(Reserved::Hold) => {
            let mut change = begun(view, index, &planned, Cursor::Hold, &command_id);
            pass(&mut change, Verb::Hold, "the step hold", now);
            Decision::Record(Box::new(change))
        }
        Some(Reserved::Wait) => {
            let seconds = planned.given.get("seconds").and_then(Value::as_f64);
            let until =
                seconds.map(|seconds| now.after(Duration::from_secs_f64(seconds.clamp(0.0, 86400.0))));
            let cursor = Cursor::Pause { since: now, until };
            let mut change = begun(view, index, &planned, cursor, &command_id);
            in_wait(&mut change, "the step wait", now);
            Decision::Record(Box::new(change))
        }
        _ => {
            let cursor = Cursor::OutOfBand { command_id: command_id.clone(), at: now, polling: false };
            let mut change = begun(view, index, &planned, cursor, &command_id);
            at_work(&mut change, "the controller runs the step", now);
            Decision::Begin(Box::new(change), out_of_band::action(view.run.kind, &planned, command_id, false))
        }
    }
}

/// The step is current, and the node says so.
fn begun(view: &View, index: usize, planned: &PlannedStep, cursor: Cursor, command_id: &str) -> Change {
    let mut change = view.with_run(|run| {
        run.index = Some(index);
        run.cursor = cursor;
        run.attempts = 0;
        run.hung = None;
    });
    if let Some(kind) = view.run.kind.steps() {
        *change.node.step_mut(kind) = Some(Value::Object(planned.wire()));
        change.node.driver_internal_info.insert(kind.index_field().into(), index.into());
    }
    let text = format!("step {} begins ({command_id})", planned.label());
    change.events.push(event(EventKind::Step, Severity::Info, text, view.snapshot.now));
    change
}

/// The step is current, and cannot be run as it was asked for.
fn not_begun(view: &View, begun: Change, why: &str) -> Change {
    let snapshot = Snapshot { node: begun.node, ..view.snapshot.clone() };
    let Some(run) = &snapshot.node.run else { return fail::without_run(&snapshot) };
    let view = View { snapshot: &snapshot, settings: view.settings, run };
    let mut change = fail::step_failed(&view, why, Value::Null);
    change.events.splice(0..0, begun.events);
    change
}

/// The current step has ended well: its result is stored with what it says of the node, and what it asked for comes
/// next. A result that does not say what it must fails the step.
pub(super) fn succeeded(view: &View, command_id: String, result: Value) -> Change {
    let now = view.snapshot.now;
    let (Some(index), Some(step)) = (view.run.index, view.run.current().cloned()) else {
        return fail::failed(view, "internal: a command ended without a step");
    };
    let agent = view.snapshot.abilities.as_ref().is_ok_and(|able| able.agent);
    let next = match (step.step.reboot_requested, agent && !view.run.disable_ramdisk) {
        (false, _) => Cursor::NextStep,
        (true, true) => Cursor::PowerOff,
        (true, false) => Cursor::Reboot,
    };
    let mut change = view.advance(next);
    if let Err(why) =
        raid::record_result(&mut change.node, &step, told(view, &step, &result), &in_python(now))
    {
        return fail::step_failed(view, &why, result);
    }
    if let Some(run) = &mut change.node.run {
        run.results.retain(|old| old.index != index);
        run.results.push(StepResult { index, command_id, at: now, result, error: None, certificate: None });
        run.interruptions = 0;
        run.fruitless = 0;
        run.reached = 0;
        run.checkpoint = None;
        run.hung = None;
    }
    change.node.last_error = None;
    let text = format!("step {} succeeded", step.label());
    change.events.push(event(EventKind::Step, Severity::Info, text, now));
    if step.step.reboot_requested {
        at_work(&mut change, "the step asked for a reboot", now);
    }
    change
}

/// What the step itself told: agents put it into a document of theirs.
fn told<'a>(view: &View, step: &PlannedStep, result: &'a Value) -> &'a Value {
    match view.run.kind.steps() {
        Some(kind) if step.step.in_band => &result[kind.result_field()],
        _ => result,
    }
}

/// `2026-11-22 05:10:57.123456`: an instant as Python's `str` has it, in which Ironic dates a RAID configuration.
fn in_python(at: Timestamp) -> String {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.0) * 1000);
    let at = at.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (date, (hour, minute, second, micros)) = (at.date(), at.to_hms_micro());
    let day = format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day());
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    format!("{day} {hour:02}:{minute:02}:{second:02}{fraction}")
}

fn pause(view: &View, since: Timestamp, until: Option<Timestamp>) -> Decision {
    let snapshot = view.snapshot;
    let over = match until {
        Some(until) => until <= snapshot.now,
        None => snapshot.contact.last_heartbeat_at.is_some_and(|heard| heard > since),
    };
    if over {
        let command_id = format!("{}-wait", view.run.id);
        return Decision::Record(Box::new(succeeded(view, command_id, Value::Null)));
    }
    let reason =
        if until.is_some() { "the time of the step wait to pass" } else { "a heartbeat of the agent" };
    let mut wait = listening(snapshot, view.settings, reason, view.budget());
    if until.is_some() {
        wait.deadline = until;
    }
    if overdue(&wait, snapshot.now) {
        let text = "no heartbeat came during the step wait";
        return Decision::Record(Box::new(fail::step_failed(view, text, Value::Null)));
    }
    sleep_in(wait)
}
