//! The next step: stored, then passed to the agent or to an interface of the controller. The reserved steps `hold` and
//! `wait` run here.

use super::success::succeeded;
use super::transition::{at_work, in_wait, pass};
use super::view::View;
use super::wait::{is_due, is_overdue, sleep_in, sleep_on, waiting, waiting_for_agent};
use super::{fail, out_of_band};
use crate::agents;
use crate::decision::{Change, Decision, Snapshot};
use model::history::{EventKind, Severity};
use model::image::{ImageRequest, PREPARE_INSTANCE_BOOT, is_step};
use model::plan::Reserved;
use model::provision::Verb;
use model::raid;
use model::ramdisk_deploy::is_deploy_step;
use model::request::event;
use model::run::Cursor;
use model::{PlannedStep, Timestamp};
use serde_json::Value;
use std::time::Duration;

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
    // An agent counts only if this run booted it.
    let in_ramdisk = view.run.booted && view.snapshot.contact.callback_url.is_some();
    if planned.step.requires_ramdisk && !in_ramdisk {
        let mut change = view.advance(Cursor::PowerOff);
        at_work(&mut change, &format!("step {} needs the ramdisk", planned.label()), now);
        return Decision::Record(Box::new(change));
    }
    // Deterministic: taking the same decision twice gives the same id.
    let command_id = command_id(view, index);
    if is_deploy_step(&planned.step) {
        // Its user's kernel and ramdisk are booted as ours are.
        let mut change = begun(view, index, &planned, Cursor::PowerOff, &command_id);
        at_work(&mut change, "the controller runs the step", now);
        return Decision::Record(Box::new(change));
    }
    if planned.step.in_band {
        let agent = agents::of(&view.snapshot.contact);
        let cursor = Cursor::Issued {
            command_id: command_id.clone(),
            at: now,
            boot_id: agent.boot_id().map(str::to_owned),
            process_id: agent.process_id().map(str::to_owned),
            accepted: false,
        };
        let mut change = begun(view, index, &planned, cursor, &command_id);
        if is_step(&planned.step, PREPARE_INSTANCE_BOOT) {
            match ImageRequest::of(&view.snapshot.node) {
                Err(why) => return Decision::Record(Box::new(not_begun(view, change, &why.to_string()))),
                Ok(image) if !agent.prepares_boot(image.boot_mode()) => {
                    let done = |view: &View| succeeded(view, command_id.clone(), Value::Null);
                    return Decision::Record(Box::new(ended_at_once(view, change, done)));
                }
                Ok(_) => {}
            }
        }
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

/// Id of the execution of a step that begins now.
pub(super) fn command_id(view: &View, index: usize) -> String {
    format!("{}-{index}-{}-{}", view.run.id, view.run.replans, view.run.interruptions)
}

/// The step is the current one, in the run and in the node's fields.
fn begun(view: &View, index: usize, planned: &PlannedStep, cursor: Cursor, command_id: &str) -> Change {
    let mut change = view.with_run(|run| {
        // A step that its BMC refuses begins again and again: its attempts go on counting.
        if run.index != Some(index) {
            run.attempts = 0;
        }
        run.index = Some(index);
        run.cursor = cursor;
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

/// The step is the current one and fails, because it cannot be run as requested.
fn not_begun(view: &View, begun: Change, why: &str) -> Change {
    ended_at_once(view, begun, |view| fail::step_failed(view, why, Value::Null))
}

/// The step is the current one and ends in the same write.
fn ended_at_once(view: &View, begun: Change, end: impl FnOnce(&View) -> Change) -> Change {
    let snapshot = Snapshot { node: begun.node, ..view.snapshot.clone() };
    let Some(run) = &snapshot.node.run else { return fail::without_run(&snapshot) };
    let view = View { snapshot: &snapshot, settings: view.settings, run };
    let mut change = end(&view);
    change.events.splice(0..0, begun.events);
    change
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
    let mut wait = waiting_for_agent(view, reason, view.budget());
    if until.is_some() {
        wait.deadline = until;
    }
    if is_overdue(&wait, snapshot.now) {
        let text = "no heartbeat came during the step wait";
        return Decision::Record(Box::new(fail::step_failed(view, text, Value::Null)));
    }
    sleep_in(wait)
}
