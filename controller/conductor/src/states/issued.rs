//! One command: sent until the agent has it, watched until it ends, stored.
//!
//! An id that the agent has had before is answered with the same command, so sending is repeated until it
//! is acknowledged. What ends the wait otherwise: the node rebooted (another boot id, or power found off),
//! the agent was restarted (it does not know the id), or nobody was heard for too long.

use super::cleaning::View;
use super::{end, is_due, overdue, pass, sleep_on, unexpected, waiting};
use crate::decision::{Change, Decision, Deed, Outcome};
use agent_protocol::command::{CommandStatus, Status};
use agent_protocol::record::{EraseReport, Outcome as DiskOutcome};
use model::history::{EventKind, Severity};
use model::provision::Verb;
use model::request::event;
use model::run::{Cursor, RunKind};
use model::{PlannedStep, PowerState, StepResult};
use serde_json::Value;
use std::time::Duration;

pub(super) fn decide(view: &View) -> Decision {
    let (Cursor::Issued { command_id, at, boot_id, accepted }, Some(step)) =
        (&view.run.cursor, view.run.current())
    else {
        let text = "internal: the command that was issued has no step in the plan";
        return Decision::Record(Box::new(end::failed(view, text)));
    };
    let (snapshot, now) = (view.snapshot, view.snapshot.now);
    let contact = &snapshot.contact;
    if contact.callback_url.is_none() {
        return await_return(view, step);
    }
    let state = contact.state.as_ref();
    if let (Some(then), Some(state)) = (boot_id, state)
        && *then != state.boot_id
    {
        return Decision::Record(Box::new(interrupted(view, "the node rebooted", false)));
    }
    if view.run.abort && step.step.abortable && state.is_none() {
        // ironic-python-agent cannot be told to stop.
        return Decision::Record(Box::new(end::aborted(view)));
    }
    let heard = contact.last_heartbeat_at.unwrap_or(*at).max(*at);
    if now.since(heard) >= Duration::from_secs(view.settings.agent_silence_s) {
        let text = format!("the agent has not been heard for {} s", now.since(heard).as_secs());
        return Decision::Record(Box::new(end::step_failed(view, &text, Value::Null)));
    }
    if view.run.attempts >= 2 && contact.rival.as_ref().is_some_and(|rival| rival.at > heard) {
        let text = "the agent does not answer and another asks for its token: the node rebooted";
        let mut change = view.advance(view.run.cursor.clone());
        change.events.push(event(EventKind::Agent, Severity::Info, text.into(), now));
        change.forget_agent = true;
        return Decision::Record(Box::new(change));
    }
    // News is acted on at once, but after a failed deed only as the pause allows.
    let eager = view.run.attempts == 0;
    let id = command_id.clone();
    if !accepted {
        return if !eager && !is_due(snapshot) {
            sleep_on(&snapshot.node)
        } else if !eager && view.run.attempts.is_multiple_of(2) {
            Decision::Act(Deed::ReadPower)
        } else {
            Decision::Act(Deed::SendStep { command_id: id, step: Box::new(step.clone()) })
        };
    }
    let ended = state.is_some_and(|state| state.ended.contains(&id));
    if ended && eager {
        return Decision::Act(Deed::AskCommand { command_id: id });
    }
    if !is_due(snapshot) {
        return sleep_on(&snapshot.node);
    }
    Decision::Act(match view.run.attempts % 2 {
        1 => Deed::ReadPower,
        _ if view.run.abort && step.step.abortable => Deed::CancelCommand { command_id: id },
        _ => Deed::AskCommand { command_id: id },
    })
}

/// The agent was forgotten because it fell silent while another asked for its token.
fn await_return(view: &View, step: &PlannedStep) -> Decision {
    if let Some(change) = super::boot::give_token_again(view) {
        return Decision::Record(Box::new(change));
    }
    let reason = format!("an agent to come back: the node was lost during {}", step.label());
    let limit = Duration::from_secs(view.settings.boot_timeout_s);
    let wait = waiting(&view.snapshot.node, &reason, Some(limit), view.snapshot.now);
    if overdue(&wait, view.snapshot.now) {
        let text = format!("the node was lost and no agent came back within {} s", limit.as_secs());
        return Decision::Record(Box::new(end::step_failed(view, &text, Value::Null)));
    }
    Decision::Sleep { wake_at: wait.deadline, wait: Some(wait) }
}

pub(super) fn absorb(view: &View, deed: &Deed, outcome: Outcome) -> Change {
    match (deed, outcome) {
        (_, Outcome::Command(status)) => command(view, status),
        (Deed::ReadPower, Outcome::Power(PowerState::Off)) => interrupted(view, "the node lost power", true),
        (Deed::ReadPower, Outcome::Power(_)) => again(view, None),
        (Deed::SendStep { .. }, Outcome::Busy(text)) if view.run.attempts < view.settings.max_attempts => {
            again(view, Some(text))
        }
        (_, Outcome::NoSuchCommand) => interrupted(
            view,
            "the agent was restarted: it no longer knows the command it had accepted",
            false,
        ),
        (_, Outcome::Failed(trouble)) if trouble.retryable => again(view, Some(trouble.text)),
        (_, Outcome::Failed(trouble)) => end::step_failed(view, &trouble.text, Value::Null),
        (_, Outcome::Busy(text)) => end::step_failed(view, &text, Value::Null),
        (deed, other) => end::step_failed(view, &unexpected(&format!("{deed:?}"), &other).text, Value::Null),
    }
}

/// Nothing learnt: once more after the pause, with what is waited for kept.
fn again(view: &View, trouble: Option<String>) -> Change {
    let mut change = view.with_run(|run| run.attempts += 1);
    change.node.wait = view.snapshot.node.wait.clone();
    change.node.next_wake_at = Some(view.snapshot.now.after(view.settings.agent_poll()));
    if let Some(text) = trouble {
        change.node.wait = Some(waiting(
            &view.snapshot.node,
            &format!("the agent to answer ({text})"),
            None,
            view.snapshot.now,
        ));
    }
    change
}

fn command(view: &View, status: CommandStatus) -> Change {
    let now = view.snapshot.now;
    let result = status.command_result.clone().unwrap_or(Value::Null);
    match status.command_status {
        Status::Running => running(view, status.id),
        Status::VersionMismatch => version_mismatch(view),
        Status::Failed if view.run.abort => end::aborted_with(view, result),
        Status::Failed => {
            let text = status.command_error.map_or_else(
                || "the agent gave no reason".to_owned(),
                |error| if error.details.is_empty() { error.message } else { error.details },
            );
            end::step_failed(view, &text, result)
        }
        Status::Succeeded => match doubt(view, &result) {
            Some(doubt) => end::step_failed(view, &doubt, result),
            None => succeeded(view, status.id, result, now),
        },
    }
}

fn running(view: &View, id: String) -> Change {
    let now = view.snapshot.now;
    let mut change = view.with_run(|run| {
        run.attempts = 0;
        if let Cursor::Issued { command_id, accepted, .. } = &mut run.cursor {
            // ironic-python-agent chooses its own ids.
            *command_id = id;
            *accepted = true;
        }
    });
    let label = view.run.current().map(PlannedStep::label).unwrap_or_default();
    let mut wait = waiting(&view.snapshot.node, &format!("step {label} to end"), None, now);
    wait.deadline = Some(now.after(Duration::from_secs(view.settings.agent_silence_s)));
    change.node.wait = Some(wait);
    change.node.last_error = None;
    change.node.next_wake_at = Some(now.after(view.settings.agent_poll()));
    change
}

/// Why a success is not believed: it is for another step, or its own report says otherwise. Fails closed.
fn doubt(view: &View, result: &Value) -> Option<String> {
    let step = &view.run.current()?.step;
    if let Some(told) = result.get("clean_step") {
        let of = |key: &str| told.get(key).and_then(Value::as_str);
        if of("step") != Some(&step.step) || of("interface") != Some(&step.interface) {
            return Some(format!("the agent reported success of another step: {told}"));
        }
    }
    let report = result.get("clean_result").filter(|report| report.get("disks").is_some())?;
    let report: EraseReport = match serde_json::from_value(report.clone()) {
        Ok(report) => report,
        Err(error) => return Some(format!("the agent's erase report cannot be read: {error}")),
    };
    let bad = report.disks.iter().find(|disk| {
        let unverified = disk.verification.as_ref().is_none_or(|seen| !seen.passed);
        match disk.outcome {
            DiskOutcome::Failed => true,
            DiskOutcome::Erased | DiskOutcome::MetadataErased => unverified,
            DiskOutcome::Skipped => disk.reason.is_none(),
        }
    })?;
    Some(format!(
        "the step was reported as a success but the record of disk {} (serial {}) says {:?}, reason {:?}",
        bad.device,
        bad.serial.as_deref().unwrap_or("none"),
        bad.outcome,
        bad.reason
    ))
}

fn succeeded(view: &View, command_id: String, result: Value, now: model::Timestamp) -> Change {
    let (Some(index), Some(step)) = (view.run.index, view.run.current().cloned()) else {
        return end::failed(view, "internal: a command ended without a step");
    };
    let mut change = view.with_run(|run| {
        run.results.retain(|old| old.index != index);
        run.results.push(StepResult { index, command_id, at: now, result, error: None });
        run.attempts = 0;
        run.interruptions = 0;
        run.cursor = if step.step.reboot_requested { Cursor::PowerOff } else { Cursor::NextStep };
    });
    change.node.last_error = None;
    let text = format!("step {} succeeded", step.label());
    change.events.push(event(EventKind::Step, Severity::Info, text, now));
    if step.step.reboot_requested {
        pass(&mut change, Verb::Resume, "the step asked for a reboot", now);
    }
    change
}

fn version_mismatch(view: &View) -> Change {
    if view.run.replans >= view.settings.max_replans {
        return end::failed(view, "the hardware managers of the agent kept changing during cleaning");
    }
    let automated = view.run.kind == RunKind::AutomatedClean;
    let mut change = view.with_run(|run| {
        run.replans += 1;
        run.cursor = Cursor::LearnSteps;
        run.attempts = 0;
        if automated {
            run.plan = None;
            run.results.clear();
            run.index = None;
        }
    });
    let cause = if automated {
        "hardware managers changed: automated cleaning starts again with fresh steps"
    } else {
        "hardware managers changed: the step is run again"
    };
    pass(&mut change, Verb::Resume, cause, view.snapshot.now);
    change
}

/// The node or its agent went away in the middle of the step. Only what says it may be repeated is.
pub(super) fn interrupted(view: &View, what: &str, cold: bool) -> Change {
    let now = view.snapshot.now;
    let Some(step) = view.run.current() else {
        return end::failed(view, &format!("{what}, and the plan has no current step"));
    };
    let times = view.run.interruptions + 1;
    let text = format!("{what} in the middle of the step (interruption {times})");
    if !step.step.idempotent {
        return end::step_failed(
            view,
            &format!("{text}; the step does not say that it may be repeated"),
            Value::Null,
        );
    }
    if times > view.settings.max_interruptions {
        return end::step_failed(view, &text, Value::Null);
    }
    let mut change = view.advance(if cold { Cursor::PowerOff } else { Cursor::LearnSteps });
    if let Some(run) = &mut change.node.run {
        run.interruptions = times;
    }
    pass(&mut change, Verb::Resume, &format!("{text}; {} is started again", step.label()), now);
    change
}
