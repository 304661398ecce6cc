//! One command: sent until the agent has it, watched until it ends, stored.
//!
//! An id that the agent has had before is answered with the same command, so sending is repeated until it
//! is acknowledged. What ends the wait otherwise: the node rebooted (another boot id, or power found off),
//! the agent was restarted (it does not know the id), or nobody was heard for too long.

use super::run::View;
use super::{
    at_work, evidence, fail, is_due, listening, overdue, sleep_in, sleep_on, steps, unexpected, waiting,
};
use crate::decision::{Action, Change, Decision, Outcome};
use agent_protocol::command::{CHECKPOINT_MAX, CommandError, CommandStatus, Status};
use agent_protocol::progress::{DiskProgress, Progress};
use agent_protocol::record::{EraseReport, Outcome as DiskOutcome};
use model::history::{EventKind, Severity};
use model::request::event;
use model::run::Cursor;
use model::{PlannedStep, PowerState, RunKind, Timestamp};
use serde_json::Value;
use std::time::Duration;

/// What the agent calls the error of a step that stopped because it was told to.
const STOPPED: &str = "Cancelled";

pub(super) fn decide(view: &View) -> Decision {
    let (Cursor::Issued { command_id, at, boot_id, process_id, accepted }, Some(step)) =
        (&view.run.cursor, view.run.current())
    else {
        let text = "internal: the command that was issued has no step in the plan";
        return Decision::Record(Box::new(fail::failed(view, text)));
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
    if let (Some(then), Some(state)) = (process_id, state)
        && *then != state.process_id
    {
        let what = "the agent was restarted: its memory of the command is lost";
        return Decision::Record(Box::new(interrupted(view, what, false)));
    }
    // ironic-python-agent tells neither: one that got its token later than the command was written down is another.
    if state.is_none() && contact.token_at.is_some_and(|given| given > *at) {
        let what = "the agent was restarted, or the node rebooted: another agent has the token";
        return Decision::Record(Box::new(interrupted(view, what, false)));
    }
    if view.run.abort && step.step.abortable && state.is_none() {
        // ironic-python-agent cannot be told to stop.
        return Decision::Record(Box::new(fail::aborted(view)));
    }
    let heard = contact.last_heartbeat_at.unwrap_or(*at).max(*at).max(snapshot.listening_since);
    let ended = state.is_some_and(|state| state.ended.contains(command_id));
    // Its answers are heard, too: only who was asked in vain, on a node that has power, is judged by the clock.
    let in_vain = view.run.attempts >= 2 && view.run.hung.is_none();
    if in_vain && now.since(heard) >= Duration::from_secs(view.settings.agent_silence_s) {
        let refused = contact.rival.as_ref().is_some_and(|rival| rival.at > heard);
        let rival =
            if refused { "; a lookup of its node was refused since: a boot gets one token" } else { "" };
        let text = format!("the agent has not been heard for {} s{rival}", now.since(heard).as_secs());
        return Decision::Record(Box::new(fail::step_failed(view, &text, Value::Null)));
    }
    let is_heard = contact.last_heartbeat_at.is_some_and(|at| at >= snapshot.listening_since);
    if in_vain && is_heard && view.run.attempts >= 2 * view.settings.max_attempts {
        // It is heard and does not answer.
        match hang(view, step, *at) {
            Some(text) if *accepted && !ended => return Decision::Record(Box::new(hung(view, step, text))),
            Some(_) => {
                let what = if ended { "asked how the step ended" } else { "given the step" };
                let text = format!("the agent is heard, but could not be {what}");
                return Decision::Record(Box::new(fail::step_failed(view, &text, Value::Null)));
            }
            None => {}
        }
    }
    // ironic-python-agent tells no process: a lookup of the agent itself, that the network repeats, comes soon after it;
    // who has really started over goes on asking.
    let soon = Duration::from_secs(if state.is_none() { view.settings.agent_silence_s / 4 } else { 0 });
    if in_vain && contact.rival.as_ref().is_some_and(|rival| rival.at > heard.after(soon)) {
        if state.is_none() && (!accepted || !step.step.idempotent) {
            // ironic-python-agent does not tell its process: the next one would not be known for another. It asks once
            // and, without a token, stops for good: nobody would come back.
            let what = "the agent does not answer and another asks for its token";
            return Decision::Record(Box::new(interrupted(view, what, false)));
        }
        let text = "the agent does not answer and another asks for its token: the node rebooted";
        let mut change = view.advance(view.run.cursor.clone());
        change.events.push(event(EventKind::Agent, Severity::Info, text.into(), now));
        change.forget_agent = true;
        return Decision::Record(Box::new(change));
    }
    // News is acted on at once, but after a failed action only as the pause allows.
    let eager = view.run.attempts == 0;
    let id = command_id.clone();
    if !accepted {
        return if !eager && !is_due(snapshot) {
            sleep_on(&snapshot.node)
        } else if !eager && view.run.attempts.is_multiple_of(2) {
            Decision::Act(Action::ReadPower)
        } else {
            Decision::Act(Action::SendStep {
                command_id: id,
                run: view.run.kind,
                step: Box::new(step.clone()),
            })
        };
    }
    if ended && eager {
        return Decision::Act(Action::AskCommand { command_id: id });
    }
    // A time later than the next poll is the deadline of a wait for an agent that is back by now.
    let back = snapshot.node.next_wake_at.is_some_and(|at| at > now.after(view.settings.agent_poll()));
    if !back && !is_due(snapshot) {
        return sleep_on(&snapshot.node);
    }
    Decision::Act(match view.run.attempts % 2 {
        1 => Action::ReadPower,
        _ if (view.run.abort || view.run.hung.is_some()) && step.step.abortable => {
            Action::CancelCommand { command_id: id }
        }
        _ => Action::AskCommand { command_id: id },
    })
}

/// The agent was forgotten because it fell silent while another asked for its token.
fn await_return(view: &View, step: &PlannedStep) -> Decision {
    if let Some(change) = super::boot::give_token_again(view) {
        return Decision::Record(Box::new(change));
    }
    let reason = format!("an agent to come back: the node was lost during {}", step.label());
    let limit = view.budget();
    let wait = listening(view.snapshot, view.settings, &reason, limit);
    if overdue(&wait, view.snapshot.now) {
        let text = format!(
            "the agent did not answer, another asked for its token, and no agent came back within {} s",
            limit.as_secs()
        );
        return Decision::Record(Box::new(fail::step_failed(view, &text, Value::Null)));
    }
    sleep_in(wait)
}

/// When the step counts as hung, at the earliest: it has a deadline, and a limit of time without progress
/// where the agent tells its progress.
fn patience(view: &View, step: &PlannedStep, at: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
    let (limit, stall) = view.settings.step_limits(&step.label());
    let contact = &view.snapshot.contact;
    let moved = contact.progress_at.unwrap_or(at).max(at);
    // A step that no heartbeat has told of yet cannot have told its progress.
    let tells = contact.state.as_ref().is_some_and(|state| state.running.is_some());
    (limit.map(|limit| at.after(limit)), stall.filter(|_| tells).map(|stall| moved.after(stall)))
}

/// Why the step counts as hung although the agent is heard.
fn hang(view: &View, step: &PlannedStep, at: Timestamp) -> Option<String> {
    let (limit, stall) = patience(view, step, at);
    if let Some(limit) = limit.filter(|limit| *limit <= view.snapshot.now) {
        return Some(format!("the step has taken longer than its limit of {} s", limit.since(at).as_secs()));
    }
    // From heartbeat to heartbeat: one that was lost, or that nobody was there to hear, would have told progress.
    let contact = &view.snapshot.contact;
    let heard = contact.last_heartbeat_at.unwrap_or(at);
    if stall.is_some_and(|stall| stall <= heard) {
        let moved = contact.progress_at.unwrap_or(at).max(at);
        let seconds = heard.since(moved).as_secs();
        return Some(format!("the step hangs: no progress for {seconds} s, while the agent is heard"));
    }
    None
}

/// A hung step is told to stop where that is possible, then the run fails.
fn hung(view: &View, step: &PlannedStep, text: String) -> Change {
    if !step.step.abortable || view.snapshot.contact.state.is_none() {
        return fail::step_failed(view, &text, Value::Null);
    }
    let mut change = view.with_run(|run| {
        run.attempts = 0;
        run.hung = Some(text.clone());
    });
    change.events.push(event(EventKind::Step, Severity::Error, text, view.snapshot.now));
    change
}

pub(super) fn apply_outcome(view: &View, action: &Action, outcome: Outcome) -> Change {
    // An end that the agent tells is the truth, however late it comes.
    let has_ended = matches!(&outcome, Outcome::Command(status) if status.command_status != Status::Running);
    let last_look = !has_ended && view.run.attempts + 1 >= view.settings.max_attempts;
    if let Some(text) = view.run.hung.as_ref().filter(|_| last_look) {
        let text = format!("{text}; it could not be told to stop");
        return fail::step_failed(view, &text, Value::Null);
    }
    match (action, outcome) {
        (_, Outcome::Command(status)) => command(view, status),
        (Action::ReadPower, Outcome::Power(PowerState::Off)) => {
            interrupted(view, "the node lost power", true)
        }
        (Action::ReadPower, Outcome::Power(_)) => again(view, None),
        (Action::SendStep { .. }, Outcome::Busy(text)) if view.run.attempts < view.settings.max_attempts => {
            again(view, Some(text))
        }
        (_, Outcome::NoSuchCommand) => interrupted(
            view,
            "the agent was restarted: it no longer knows the command it had accepted",
            false,
        ),
        (_, Outcome::Failed(error)) if error.retryable => again(view, Some(error.text)),
        (_, Outcome::Failed(error)) => fail::step_failed(view, &error.text, Value::Null),
        (_, Outcome::Busy(text)) => fail::step_failed(view, &text, Value::Null),
        (action, other) => {
            fail::step_failed(view, &unexpected(&format!("{action:?}"), &other).text, Value::Null)
        }
    }
}

/// Nothing learnt: once more after the pause, with what is waited for kept.
fn again(view: &View, error: Option<String>) -> Change {
    let mut change = view.with_run(|run| run.attempts += 1);
    change.node.wait = view.snapshot.node.wait.clone();
    change.node.next_wake_at = Some(view.snapshot.now.after(view.settings.agent_poll()));
    if let Some(text) = error {
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
    let mut result = status.command_result.unwrap_or(Value::Null);
    match status.command_status {
        Status::Running => running(view, status.id, status.checkpoint),
        Status::VersionMismatch => version_mismatch(view),
        Status::Failed => {
            let evidence = evidence::take(view, false, &mut result);
            let mut error = status.command_error;
            if let (Some(error), Err(refused)) = (&mut error, &evidence) {
                error.details = format!("{}; {refused}", error.details);
            }
            Change { evidence: evidence.ok().flatten(), ..failed(view, error, result) }
        }
        Status::Succeeded => {
            if let Some(doubt) = doubt(view, &result) {
                return fail::step_failed(view, &doubt, result);
            }
            match evidence::take(view, true, &mut result) {
                Err(refused) => fail::step_failed(view, &refused, result),
                Ok(evidence) => Change { evidence, ..steps::succeeded(view, status.id, result) },
            }
        }
    }
}

/// The step failed, or it stopped because it was told to. What failed by itself says so, also where it was
/// about to be stopped.
fn failed(view: &View, error: Option<CommandError>, result: Value) -> Change {
    let stopped = error.as_ref().is_none_or(|error| error.kind == STOPPED);
    let text = match error {
        None => "the agent gave no reason".to_owned(),
        Some(error) if error.details.is_empty() => error.message,
        Some(error) => error.details,
    };
    match (&view.run.hung, view.run.abort) {
        (_, true) if stopped => fail::aborted_with(view, result),
        (Some(hung), _) if stopped => fail::step_failed(view, hung, result),
        (Some(hung), _) => fail::step_failed(view, &format!("{text}; before that, {hung}"), result),
        (None, true) => {
            fail::step_failed(view, &format!("{text}; before that, a user asked to abort"), result)
        }
        (None, false) => fail::step_failed(view, &text, result),
    }
}

fn running(view: &View, id: String, saved: Option<Value>) -> Change {
    let now = view.snapshot.now;
    if let (Cursor::Issued { at, accepted: true, .. }, Some(step), None) =
        (&view.run.cursor, view.run.current(), &view.run.hung)
        && let Some(text) = hang(view, step, *at)
    {
        return hung(view, step, text);
    }
    // A hung step that was told to stop is given as many looks as any failing action.
    let stopping = view.run.hung.is_some();
    let mut change = view.with_run(|run| {
        run.attempts = if stopping { run.attempts + 2 } else { 0 };
        if let Some(saved) = saved.filter(|saved| saved.to_string().len() <= CHECKPOINT_MAX) {
            run.keep_checkpoint(saved);
        }
        if let Cursor::Issued { command_id, at, accepted, .. } = &mut run.cursor {
            // ironic-python-agent chooses its own ids.
            *command_id = id;
            // Its time counts from when the agent had it, not from when it was written down.
            if !*accepted {
                *at = now;
            }
            *accepted = true;
        }
    });
    let label = view.run.current().map(PlannedStep::label).unwrap_or_default();
    let mut wait = waiting(&view.snapshot.node, &format!("step {label} to end"), None, now);
    if let (Cursor::Issued { at, .. }, Some(step)) = (&view.run.cursor, view.run.current()) {
        let (limit, stall) = patience(view, step, *at);
        let silence = now.after(Duration::from_secs(view.settings.agent_silence_s));
        wait.deadline = [limit, stall, Some(silence)].into_iter().flatten().min();
    }
    change.node.wait = Some(wait);
    change.node.last_error = stalled(view);
    if let Some(text) = change.node.last_error.clone().filter(|_| view.snapshot.node.last_error.is_none()) {
        change.events.push(event(EventKind::Step, Severity::Error, format!("{label}: {text}"), now));
    }
    change.node.next_wake_at = Some(now.after(view.settings.agent_poll()));
    change
}

/// The disks that stand still, as the agent tells it with its heartbeats. A warning: the step has its limits.
fn stalled(view: &View) -> Option<String> {
    let progress = view.snapshot.contact.state.as_ref()?.progress.as_ref()?;
    let progress: Progress = serde_json::from_value(progress.clone()).ok()?;
    let still = |disk: &DiskProgress| {
        let serial = disk.serial.as_deref().unwrap_or("none");
        let share = format!("{} of {} bytes", disk.bytes_done, disk.bytes_total);
        disk.stalled_since.map(|_| format!("disk {} (serial {serial}) stands still at {share}", disk.device))
    };
    let still: Vec<String> = progress.disks.iter().filter_map(still).collect();
    (!still.is_empty()).then(|| still.join("; "))
}

/// Why a success is not believed: it is for another step, or its own report says otherwise. Fails closed.
fn doubt(view: &View, result: &Value) -> Option<String> {
    let step = &view.run.current()?.step;
    let kind = view.run.kind.steps()?;
    if let Some(told) = result.get(kind.step_field()) {
        let of = |key: &str| told.get(key).and_then(Value::as_str);
        if of("step") != Some(&step.step) || of("interface") != Some(&step.interface) {
            return Some(format!("the agent reported success of another step: {told}"));
        }
    }
    let report = result.get(kind.result_field()).filter(|report| report.get("disks").is_some())?;
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

fn version_mismatch(view: &View) -> Change {
    if view.run.replans >= view.settings.max_replans {
        let doing = view.run.kind.doing();
        let text = format!("the hardware managers of the agent kept changing during {doing}");
        return fail::failed(view, &text);
    }
    let automated = view.run.kind == RunKind::AutomatedClean;
    let mut change = view.with_run(|run| {
        run.replans += 1;
        // Another version may read it otherwise.
        run.checkpoint = None;
        run.cursor = Cursor::LearnSteps;
        run.attempts = 0;
        // Counted here, and not once more when the new versions are learnt.
        run.hardware_manager_version.clear();
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
    at_work(&mut change, cause, view.snapshot.now);
    change
}

/// The node or its agent went away in the middle of the step. Only what says it may be repeated is.
pub(super) fn interrupted(view: &View, what: &str, cold: bool) -> Change {
    let now = view.snapshot.now;
    let Some(step) = view.run.current() else {
        return fail::failed(view, &format!("{what}, and the plan has no current step"));
    };
    let mut run = view.run.clone();
    run.interrupt();
    let times = run.interruptions;
    if let Some(text) = &view.run.hung {
        return fail::step_failed(view, &format!("{text}; then {what}"), Value::Null);
    }
    let text = format!("{what} in the middle of the step (interruption {times})");
    if !step.step.idempotent {
        return fail::step_failed(
            view,
            &format!("{text}; the step does not say that it may be repeated"),
            Value::Null,
        );
    }
    if run.fruitless > view.settings.max_interruptions {
        return fail::step_failed(view, &text, Value::Null);
    }
    let mut change = view.advance(if cold { Cursor::PowerOff } else { Cursor::LearnSteps });
    if let Some(run) = &mut change.node.run {
        run.interrupt();
    }
    let again =
        if view.run.resumes_from().is_some() { "goes on from its checkpoint" } else { "is started again" };
    at_work(&mut change, &format!("{text}; {} {again}", step.label()), now);
    change
}
