//! How an action is retried, and how a run fails or is aborted. The node is not powered off
//! (specs/cleaning-states.txt: "a power cycle could damage a node").

use super::logs;
use super::transition::pass;
use super::view::View;
use crate::agents;
use crate::decision::{ActionError, Change, Snapshot};
use model::provision::{Verb, transition};
use model::run::{Cursor, Logs};
use model::{PlannedStep, StepKind, StepResult, Timestamp};
use serde_json::Value;

/// An action failed: retry it after a pause, or fail the run.
pub(super) fn retry_or_fail(view: &View, error: ActionError, what: &str) -> Change {
    let attempts = view.run.attempts + 1;
    if !error.retryable || attempts >= view.settings.max_attempts {
        return failed(view, &format!("{what}: {}", error.text));
    }
    let mut change = view.with_run(|run| run.attempts = attempts);
    change.node.wait = view.snapshot.node.wait.clone();
    change.node.last_error = Some(error.text);
    change.node.next_wake_at = Some(view.snapshot.now.after(view.settings.retry_pause()));
    change
}

/// The run fails outside of any step.
pub(super) fn failed(view: &View, text: &str) -> Change {
    fail(view, text, true)
}

/// The run fails because the request cannot be carried out; nothing is wrong with the node.
pub(super) fn refused(view: &View, text: &str) -> Change {
    fail(view, text, false)
}

/// The current step failed; its result is stored.
pub(super) fn step_failed(view: &View, text: &str, result: Value) -> Change {
    let label = view.run.current().map(PlannedStep::label).unwrap_or_default();
    let uuid = view.snapshot.node.uuid;
    let text = match view.run.kind.steps() {
        Some(StepKind::Clean) => format!("Clean step {label} failed on node {uuid}. {text}"),
        Some(StepKind::Deploy) => format!("Deploy step {label} failed on node {uuid}. {text}"),
        Some(StepKind::Service) => format!("Service step {label} failed on node {uuid}. {text}"),
        None => format!("Failed to {} node {uuid}: {text}", view.run.kind.operation()),
    };
    let mut change = fail(view, &text, true);
    store_result(view, &mut change, &text, result);
    change
}

fn store_result(view: &View, change: &mut Change, text: &str, result: Value) {
    if let (Some(run), Some(index)) = (&mut change.node.run, view.run.index) {
        let command_id = view.run.command_id().unwrap_or_default().to_owned();
        let ended = StepResult::success(index, command_id, view.snapshot.now, result);
        run.results.push(StepResult { error: Some(text.to_owned()), ..ended });
    }
}

fn fail(view: &View, text: &str, maintenance: bool) -> Change {
    let mut change = view.advance(Cursor::Done);
    change.node.next_wake_at = None;
    if let Some(run) = &mut change.node.run {
        run.ramdisk_kept = None;
    }
    if let Some(run) = change.node.run.as_mut().filter(|_| maintenance && logs::can_be_asked(view)) {
        // Collected after the failure is stored: an agent that hangs while it packs its logs delays nothing.
        run.logs = Some(Logs::Wanted);
        change.node.next_wake_at = Some(view.snapshot.now);
    }
    if let Some(fault) = view.run.kind.fault().filter(|_| maintenance) {
        change.node.maintenance = true;
        change.node.maintenance_reason = Some(text.to_owned());
        change.node.fault = Some(fault.to_owned());
    }
    leave(&mut change, text, view.snapshot.now);
    change.node.last_error = Some(text.to_owned());
    change
}

/// To the state of failure. From a hold only an abort leads there.
fn leave(change: &mut Change, text: &str, now: Timestamp) {
    let fails = transition(change.node.provision_state, Verb::Fail).is_ok();
    pass(change, if fails { Verb::Fail } else { Verb::Abort }, text, now);
}

/// A user aborted the run; its step has stopped, or there was none.
pub(super) fn aborted(view: &View) -> Change {
    aborted_with(view, Value::Null)
}

/// The same, with the result that the stopped step reported.
pub(super) fn aborted_with(view: &View, result: Value) -> Change {
    let mut text = format!("By request, the {} operation was aborted", view.run.kind.operation());
    if let Some(step) = view.run.current() {
        text = format!("{text} during or after the completion of step \"{}\"", step.label());
    }
    let running = matches!(view.run.cursor, Cursor::Issued { .. });
    if running && !agents::of(&view.snapshot.contact).can_cancel() {
        text.push_str("; the agent cannot stop a step and may still be at it");
    }
    let mut change = fail(view, &text, false);
    if running {
        store_result(view, &mut change, &text, result);
    }
    change
}

/// A state that needs a run has none: nothing shows what was done, so it counts as not done.
pub(super) fn without_run(snapshot: &Snapshot) -> Change {
    let state = snapshot.node.provision_state.as_str();
    let text =
        format!("internal: the node is in state {state:?} but no run is stored; it counts as not done");
    let mut change = Change::of(snapshot.node.clone());
    leave(&mut change, &text, snapshot.now);
    change.node.last_error = Some(text);
    change.node.wait = None;
    change.node.next_wake_at = None;
    change
}
