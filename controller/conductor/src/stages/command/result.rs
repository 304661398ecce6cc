//! A command that has ended: its report is checked, then its result is stored.

use super::{erase_report, evidence, interruption, watch};
use crate::agents;
use crate::decision::Change;
use crate::issuer::Proof;
use crate::stages::erase_step::EraseStep;
use crate::stages::success::succeeded;
use crate::stages::view::View;
use crate::stages::{fail, replan};
use agent_protocol::command::{CHECKPOINT_MAX, CommandError, CommandStatus, Status};
use agent_protocol::record::{EraseReport, Outcome as DiskOutcome};
use agent_protocol::step::StepAddition;
use certificate::Finding;
use model::image::{ImageRequest, WRITE_IMAGE, is_step};
use model::{StepKind, StepResult, storage};
use serde_json::Value;

/// The kind of error with which the agent ends a command that was cancelled.
const CANCELLED: &str = "Cancelled";

/// Largest result that is stored, in bytes of JSON. That of an erase of a hundred disks has a tenth.
const RESULT_MAX: usize = 1 << 20;

/// Longest text of an error that is stored, in characters.
const ERROR_MAX: usize = 4000;

/// The agent reports how the command stands.
pub(super) fn reported(view: &View, mut status: CommandStatus) -> Change {
    let mut result = without_arguments(view, status.command_result.take().unwrap_or(Value::Null));
    if let (Status::Succeeded | Status::Failed, bytes @ RESULT_MAX..) =
        (&status.command_status, result.to_string().len())
    {
        let text = format!("its result has {bytes} bytes, more than is stored ({RESULT_MAX})");
        return fail::step_failed(view, &text, Value::Null);
    }
    match status.command_status {
        Status::Running => watch::running(view, status),
        Status::VersionMismatch => replan::on_refused_command(view),
        Status::Succeeded => {
            if let Some(text) = contradicts_report(view, &result) {
                return fail::step_failed(view, &text, result);
            }
            match evidence::take(view, true, &mut result) {
                Err(refused) => fail::step_failed(view, &refused, result),
                Ok(evidence) => {
                    let mut change = succeeded(view, status.id, result);
                    if let Some(proof) = &evidence {
                        remember(view, &mut change, proof);
                    }
                    Change { evidence, ..change }
                }
            }
        }
        Status::Failed => {
            if let Some(checkpoint) = after_reboot(view, &result) {
                let error = status.command_error.map(|error| error.details).unwrap_or_default();
                return interruption::by_request(view, &shown(view, error), checkpoint);
            }
            let evidence = evidence::take(view, false, &mut result);
            let mut error = status.command_error;
            if let (Some(error), Err(refused)) = (&mut error, &evidence) {
                error.details = format!("{}; {refused}", error.details);
            }
            Change { evidence: evidence.ok().flatten(), ..failed(view, error, result) }
        }
    }
}

/// With what the step wants to run again after a reboot. A step that is to stop is not run again.
fn after_reboot(view: &View, result: &Value) -> Option<Value> {
    let stops = view.run.abort || view.run.hung.is_some();
    let resumes = agents::of(&view.snapshot.contact).can_resume();
    StepAddition::of(result)
        .after_reboot
        .filter(|checkpoint| !stops && resumes && checkpoint.to_string().len() <= CHECKPOINT_MAX)
}

/// The result without the arguments that it repeats: ironic-python-agent returns the step with them, and those of
/// `write_image` have the configuration drive and the image's URL.
fn without_arguments(view: &View, mut result: Value) -> Value {
    let field = view.run.kind.steps().map(StepKind::step_field);
    let writes = view.run.current().is_some_and(|planned| is_step(&planned.step, WRITE_IMAGE));
    if let Some(Value::Object(repeated)) = field.and_then(|field| result.get_mut(field)).filter(|_| writes) {
        repeated.remove("args");
    }
    result
}

/// An agent's text, without the secrets of the image's URL.
fn masked(view: &View, text: String) -> String {
    match ImageRequest::of(&view.snapshot.node) {
        Ok(image) if view.run.kind.steps() == Some(StepKind::Deploy) => image.masked(&text),
        _ => text,
    }
}

/// An agent's text, as it is stored.
fn shown(view: &View, text: String) -> String {
    masked(view, text).chars().take(ERROR_MAX).collect()
}

/// What a step that succeeded has proven: the finding stands with its result, and the disks of an erase are those that the
/// next one must report.
fn remember(view: &View, change: &mut Change, proof: &Proof) {
    let of = |result: &&mut StepResult| result.command_id == proof.evidence.command_id;
    if let Some(result) = change.node.run.as_mut().and_then(|run| run.results.iter_mut().rfind(of)) {
        result.finding = Some(Finding::of(&proof.evidence).as_str().to_owned());
    }
    if view.run.current().is_some_and(|planned| EraseStep::of(&planned.step).is_some()) {
        storage::erased(&mut change.node, erase_report::seen(&proof.evidence.disks));
    }
}

/// The step failed by itself, or stopped because it was cancelled. A failure of its own is reported even if the step was
/// about to be stopped.
fn failed(view: &View, error: Option<CommandError>, result: Value) -> Change {
    let stopped = error.as_ref().is_none_or(|error| error.kind == CANCELLED);
    let text = match error {
        None => "the agent gave no reason".to_owned(),
        Some(error) if error.details.is_empty() => error.message,
        Some(error) => error.details,
    };
    let text = shown(view, text);
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

/// Why a reported success is rejected: the result is of another step, or its own erase report contradicts it. Fails
/// closed.
fn contradicts_report(view: &View, result: &Value) -> Option<String> {
    let step = &view.run.current()?.step;
    let kind = view.run.kind.steps()?;
    if let Some(reported) = result.get(kind.step_field()) {
        let of = |key: &str| reported.get(key).and_then(Value::as_str);
        if of("step") != Some(&step.step) || of("interface") != Some(&step.interface) {
            return Some(format!("the agent reported success of another step: {reported}"));
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
