//! A step that the controller runs itself: in the BMC, or one of the reserved power steps.
//!
//! That the step begins is stored before it is started. If it is then found without an outcome, the controller died or
//! the store failed in between; only a step that is declared idempotent is started again.

use super::power::power_pending;
use super::success::succeeded;
use super::transition::in_wait;
use super::view::View;
use super::wait::{is_due, sleep_on, unexpected, waiting};
use super::{fail, hello};
use crate::decision::{Action, Change, Decision, Outcome};
use model::image::{BOOT_INSTANCE, is_step};
use model::plan::Reserved;
use model::run::Cursor;
use model::{PlannedStep, PowerTarget, RunKind, StepKind};
use serde_json::Value;

/// The action that starts a step or, if it continues in the BMC, asks about it.
pub(super) fn action(kind: RunKind, step: &PlannedStep, command_id: String, polling: bool) -> Action {
    match Reserved::of(&step.step) {
        Some(_) if polling => Action::ReadPower,
        Some(Reserved::PowerOn) => Action::SetPower(PowerTarget::On),
        Some(Reserved::PowerOff) => Action::SetPower(PowerTarget::Off),
        Some(Reserved::Reboot) => Action::SetPower(PowerTarget::Reboot),
        _ => Action::RunStep {
            command_id,
            kind: kind.steps().unwrap_or(StepKind::Clean),
            step: Box::new(step.clone()),
            polling,
        },
    }
}

pub(super) fn decide(view: &View) -> Decision {
    let (Cursor::OutOfBand { command_id, polling, .. }, Some(step)) = (&view.run.cursor, view.run.current())
    else {
        let text = "internal: an out-of-band step is not in the plan";
        return Decision::Record(Box::new(fail::failed(view, text)));
    };
    if !polling {
        return Decision::Record(Box::new(interrupted(view, step)));
    }
    if view.run.abort && step.step.abortable {
        return Decision::Record(Box::new(fail::aborted(view)));
    }
    if !is_due(view.snapshot) {
        return sleep_on(&view.snapshot.node);
    }
    Decision::Act(action(view.run.kind, step, command_id.clone(), true))
}

fn interrupted(view: &View, step: &PlannedStep) -> Change {
    let what = "the controller was interrupted in the middle of the step";
    let mut run = view.run.clone();
    run.interrupt();
    if !step.step.idempotent {
        let text = format!("{what}, and the step does not say that it may be repeated");
        return fail::step_failed(view, &text, Value::Null);
    }
    if run.fruitless > view.settings.max_interruptions {
        let text = format!("{what} (interruption {})", run.interruptions);
        return fail::step_failed(view, &text, Value::Null);
    }
    let mut change = view.advance(Cursor::NextStep);
    if let Some(run) = &mut change.node.run {
        run.interrupt();
    }
    change
}

pub(super) fn apply_outcome(view: &View, action: &Action, outcome: Outcome) -> Change {
    let (Cursor::OutOfBand { command_id, at, .. }, Some(step)) = (&view.run.cursor, view.run.current())
    else {
        return fail::failed(view, "internal: an out-of-band step ended that is not in the plan");
    };
    let now = view.snapshot.now;
    match outcome {
        Outcome::StepDone(_) | Outcome::Power(_) if view.run.abort && !step.step.abortable => {
            fail::aborted(view)
        }
        Outcome::StepDone(result) => succeeded(view, command_id.clone(), result),
        Outcome::StepRunning(text) => {
            let limit = view.settings.step_limits(&step.label()).0;
            // Checked only after asking: the step may have ended while the controller was down.
            if let Some(limit) = limit.filter(|limit| now.since(*at) >= *limit) {
                let text = format!("the step has taken longer than its limit of {} s", limit.as_secs());
                return fail::step_failed(view, &text, Value::Null);
            }
            let mut change = polling(view);
            let reason = format!("step {} to end: {text}", step.label());
            let mut wait = waiting(&view.snapshot.node, &reason, limit, *at);
            wait.deadline = limit.map(|limit| at.after(limit));
            change.node.wait = Some(wait);
            change.node.next_wake_at = Some(now.after(view.settings.retry_pause()));
            // Asynchronous (specs/deploy-steps.txt: DEPLOYWAIT "if the step will continue to execute"): from now on
            // the run can be aborted.
            in_wait(&mut change, "the step goes on outside", now);
            change
        }
        Outcome::Power(state) => {
            let wanted = match Reserved::of(&step.step) {
                Some(Reserved::PowerOff) => model::PowerState::Off,
                _ => model::PowerState::On,
            };
            if state != wanted {
                let mut change = power_pending(view, Some(state), wanted);
                if let Some(run) = change.node.run.as_mut().filter(|run| run.is_active())
                    && let Cursor::OutOfBand { polling, .. } = &mut run.cursor
                {
                    *polling = true;
                }
                return change;
            }
            if is_step(&step.step, BOOT_INSTANCE) && hello::is_missing(view) {
                return hello::begin(view, command_id.clone(), state);
            }
            let mut change = succeeded(view, command_id.clone(), Value::Null);
            change.node.power_state = Some(state);
            // No agent survives a power cycle.
            change.forget_agent = Reserved::of(&step.step) != Some(Reserved::PowerOn);
            change
        }
        Outcome::Failed(error) => {
            // Asking again is not running the step again.
            let polls = matches!(&view.run.cursor, Cursor::OutOfBand { polling: true, .. });
            let again = error.retryable && (step.step.idempotent || polls);
            if again && view.run.attempts + 1 < view.settings.max_attempts {
                let mut change = view.with_run(|run| {
                    run.attempts += 1;
                    if !polls {
                        run.cursor = Cursor::NextStep;
                    }
                });
                change.node.last_error = Some(error.text);
                change.node.next_wake_at = Some(now.after(view.settings.retry_pause()));
                return change;
            }
            fail::step_failed(view, &error.text, Value::Null)
        }
        Outcome::PowerUnknown => {
            fail::step_failed(view, "the BMC accepted it and reports no power state", Value::Null)
        }
        other => fail::step_failed(view, &unexpected(&format!("{action:?}"), &other).text, Value::Null),
    }
}

fn polling(view: &View) -> Change {
    view.with_run(|run| {
        run.attempts = 0;
        if let Cursor::OutOfBand { polling, .. } = &mut run.cursor {
            *polling = true;
        }
    })
}
