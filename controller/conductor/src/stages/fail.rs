//! How a run fails or is aborted. The node is not powered off (specs/cleaning-states.txt: "a power cycle
//! could damage a node").

use super::run::View;
use super::{logs, pass};
use crate::decision::{Change, Snapshot};
use model::provision::{Verb, transition};
use model::run::{Cursor, Logs};
use model::{PlannedStep, StepKind, StepResult};
use serde_json::Value;

/// The run fails outside of any step.
pub(super) fn failed(view: &View, text: &str) -> Change {
    fail(view, text, true)
}

/// The run fails because what was asked for cannot be run; the node itself is well.
pub(super) fn refused(view: &View, text: &str) -> Change {
    fail(view, text, false)
}

/// The current step failed; its evidence is kept.
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
    keep(view, &mut change, &text, result);
    change
}

fn keep(view: &View, change: &mut Change, text: &str, result: Value) {
    if let (Some(run), Some(index)) = (&mut change.node.run, view.run.index) {
        let command_id = match &view.run.cursor {
            Cursor::Issued { command_id, .. } | Cursor::OutOfBand { command_id, .. } => command_id.clone(),
            _ => String::new(),
        };
        let error = Some(text.to_owned());
        run.results.push(StepResult {
            index,
            command_id,
            at: view.snapshot.now,
            result,
            error,
            certificate: None,
        });
    }
}

fn fail(view: &View, text: &str, maintenance: bool) -> Change {
    let mut change = view.advance(Cursor::Done);
    change.node.next_wake_at = None;
    if let Some(run) = change.node.run.as_mut().filter(|_| maintenance && logs::can_be_asked(view)) {
        // Asked for once it is stored how the run ended: who hangs while he packs them delays nothing.
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

/// To the state of failure; out of a hold only an abort leads there.
fn leave(change: &mut Change, text: &str, now: model::Timestamp) {
    let fails = transition(change.node.provision_state, Verb::Fail).is_ok();
    pass(change, if fails { Verb::Fail } else { Verb::Abort }, text, now);
}

/// A user asked for the end; the step has stopped, or there was none.
pub(super) fn aborted(view: &View) -> Change {
    aborted_with(view, Value::Null)
}

/// The same, with what the stopped step reported.
pub(super) fn aborted_with(view: &View, result: Value) -> Change {
    let mut text = format!("By request, the {} operation was aborted", view.run.kind.operation());
    if let Some(step) = view.run.current() {
        text = format!("{text} during or after the completion of step \"{}\"", step.label());
    }
    let running = matches!(view.run.cursor, Cursor::Issued { .. });
    if running && view.snapshot.contact.state.is_none() {
        text.push_str("; the agent cannot be told to stop and may still be at it");
    }
    let mut change = fail(view, &text, false);
    if running {
        keep(view, &mut change, &text, result);
    }
    change
}

/// A state of work without a run cannot be: nothing says what was done. Fails closed.
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
