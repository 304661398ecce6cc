//! How a run ends: done, failed, aborted. A failed or aborted node is not powered off
//! (specs/cleaning-states.txt: "a power cycle could damage a node").

use super::cleaning::View;
use super::{is_due, overdue, pass, sleep_on, unexpected, waiting};
use crate::decision::{Change, Decision, Deed, Outcome, Snapshot};
use model::history::{EventKind, Severity};
use model::provision::Verb;
use model::request::event;
use model::run::{Cursor, RunKind};
use model::{PlannedStep, PowerState, PowerTarget, StepResult};
use serde_json::Value;
use std::time::Duration;

/// Fault that Ironic names for a failed cleaning.
const FAULT: &str = "clean failure";

pub(super) fn decide(view: &View) -> Decision {
    if view.settings.stay_on_after_cleaning {
        return Decision::Record(Box::new(finished(view)));
    }
    if is_due(view.snapshot) {
        Decision::Act(Deed::SetPower(PowerTarget::Off))
    } else {
        sleep_on(&view.snapshot.node)
    }
}

pub(super) fn absorb(view: &View, outcome: Outcome) -> Change {
    let now = view.snapshot.now;
    match outcome {
        Outcome::Power(PowerState::Off) => {
            let mut change = finished(view);
            change.node.power_state = Some(PowerState::Off);
            change.forget_agent = true;
            change
        }
        Outcome::Power(PowerState::On) => {
            let limit = Duration::from_secs(view.settings.power_timeout_s);
            let wait = waiting(&view.snapshot.node, "the BMC to report power off", Some(limit), now);
            if overdue(&wait, now) {
                return failed(view, "all steps succeeded but the node could not be powered off");
            }
            let mut change = view.with_run(|_| {});
            change.node.wait = Some(wait);
            change.node.next_wake_at = Some(now.after(Duration::from_secs(1)));
            change
        }
        Outcome::Failed(trouble) => {
            view.retry_or_fail(trouble, "Failed to power off the node after cleaning")
        }
        other => failed(view, &unexpected("power off", &other).text),
    }
}

/// Every step has a stored success, and only then.
fn finished(view: &View) -> Change {
    let now = view.snapshot.now;
    if !view.run.all_succeeded() {
        return failed(view, "internal: cleaning was about to end with steps that have no stored success");
    }
    let mut change = view.advance(Cursor::Done);
    change.node.clean_step = None;
    change.node.last_error = None;
    change.node.driver_internal_info.remove("clean_steps");
    change.node.driver_internal_info.remove("clean_step_index");
    change.events.push(event(EventKind::Momentary, Severity::Info, "CLEANED".into(), now));
    let steps = view.run.plan.as_ref().map_or(0, Vec::len);
    let cause = format!("all {steps} steps succeeded");
    match view.run.kind {
        RunKind::ManualClean => pass(&mut change, Verb::Manage, &cause, now),
        RunKind::AutomatedClean if view.snapshot.node.retired => {
            pass(&mut change, Verb::Manage, &format!("{cause}; the node is retired"), now);
        }
        RunKind::AutomatedClean => pass(&mut change, Verb::Done, &cause, now),
    }
    change
}

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
    let text = format!("Clean step {label} failed on node {}. {text}", view.snapshot.node.uuid);
    let mut change = fail(view, &text, true);
    keep(view, &mut change, &text, result);
    change
}

fn keep(view: &View, change: &mut Change, text: &str, result: Value) {
    if let (Some(run), Some(index)) = (&mut change.node.run, view.run.index) {
        let command_id = match &view.run.cursor {
            Cursor::Issued { command_id, .. } => command_id.clone(),
            _ => String::new(),
        };
        let error = Some(text.to_owned());
        run.results.push(StepResult { index, command_id, at: view.snapshot.now, result, error });
    }
}

fn fail(view: &View, text: &str, maintenance: bool) -> Change {
    let mut change = view.advance(Cursor::Done);
    if maintenance {
        change.node.maintenance = true;
        change.node.maintenance_reason = Some(text.to_owned());
        change.node.fault = Some(FAULT.to_owned());
    }
    pass(&mut change, Verb::Fail, text, view.snapshot.now);
    change.node.last_error = Some(text.to_owned());
    change.node.next_wake_at = None;
    change
}

/// A user asked for the end; the step has stopped, or there was none.
pub(super) fn aborted(view: &View) -> Change {
    aborted_with(view, Value::Null)
}

/// The same, with what the stopped step reported.
pub(super) fn aborted_with(view: &View, result: Value) -> Change {
    let mut text = "By request, the clean operation was aborted".to_owned();
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

/// A cleaning state without a run cannot be: nothing says what was done. Fails closed.
pub(super) fn without_run(snapshot: &Snapshot) -> Change {
    let text = "internal: the node is being cleaned but no run is stored; it counts as not cleaned";
    let mut change = Change::of(snapshot.node.clone());
    pass(&mut change, Verb::Fail, text, snapshot.now);
    change.node.last_error = Some(text.to_owned());
    change.node.wait = None;
    change.node.next_wake_at = None;
    change
}
