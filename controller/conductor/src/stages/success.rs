//! A step has succeeded.

use super::fail;
use super::transition::at_work;
use super::view::View;
use crate::decision::Change;
use agent_protocol::step::StepAddition;
use model::history::{EventKind, Severity};
use model::image::{PREPARE_INSTANCE_BOOT, WRITE_IMAGE, is_step};
use model::raid;
use model::request::event;
use model::run::{Cursor, PersistentBoot};
use model::{PlannedStep, StepKind, StepResult, Timestamp, root_disk};
use serde_json::Value;
use time::OffsetDateTime;

/// Store the result of the current step with what it says of the node, and continue with what the step asked for. A
/// result that lacks what the step must report fails the step.
pub(super) fn succeeded(view: &View, command_id: String, result: Value) -> Change {
    let now = view.snapshot.now;
    let (Some(index), Some(step)) = (view.run.index, view.run.current().cloned()) else {
        return fail::failed(view, "internal: a command ended without a step");
    };
    let deploys = view.run.kind.steps() == Some(StepKind::Deploy);
    let agent = view.snapshot.abilities.as_ref().is_ok_and(|able| match deploys {
        true => able.deploys_with_agent(),
        false => able.agent,
    });
    // The catalogue says it of every run of a step, the agent of this one.
    let reboots = step.step.reboot_requested || StepAddition::of(&result).reboot_requested;
    let from_disk = is_step(&step.step, PREPARE_INSTANCE_BOOT);
    let next = match (reboots, agent && !view.run.disable_ramdisk) {
        (false, _) if from_disk => Cursor::RestoreBootDevice,
        (false, _) => Cursor::NextStep,
        (true, true) => Cursor::PowerOff,
        (true, false) => Cursor::Reboot,
    };
    let mut change = view.advance(next);
    let report = step_report(view, &step, &result);
    if let Err(why) = raid::record_result(&mut change.node, &step, report, &python_str(now)) {
        return fail::step_failed(view, &why, result);
    }
    if is_step(&step.step, WRITE_IMAGE) {
        change.node.root_disk = root_disk::reported(report);
    }
    if let Some(run) = &mut change.node.run {
        run.results.retain(|old| old.index != index);
        run.results.push(StepResult::success(index, command_id, now, result));
        run.interruptions = 0;
        run.fruitless = 0;
        run.reached = 0;
        run.checkpoint = None;
        run.hung = None;
        if from_disk {
            // From now on the firmware starts the node from its disk.
            run.boot_before = Some(PersistentBoot { device: "disk".to_owned(), mode: None });
        }
    }
    change.node.last_error = None;
    let text = format!("step {} succeeded", step.label());
    change.events.push(event(EventKind::Step, Severity::Info, text, now));
    if reboots {
        at_work(&mut change, "the step asked for a reboot", now);
    }
    change
}

/// What the step itself reported. Agents wrap it into a document of their own.
fn step_report<'a>(view: &View, step: &PlannedStep, result: &'a Value) -> &'a Value {
    match view.run.kind.steps() {
        Some(kind) if step.step.in_band => &result[kind.result_field()],
        _ => result,
    }
}

/// `2026-11-22 05:10:57.123456`: an instant as Python's `str` writes it. Ironic dates RAID configurations so.
fn python_str(at: Timestamp) -> String {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.0) * 1000);
    let at = at.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (date, (hour, minute, second, micros)) = (at.date(), at.to_hms_micro());
    let day = format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day());
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    format!("{day} {hour:02}:{minute:02}:{second:02}{fraction}")
}
