//! How a run that succeeded ends: the ramdisk is stopped, the workload is started, the node leaves the state.

use super::basis;
use super::fail::{self, retry_or_fail};
use super::fast_track;
use super::hello;
use super::logs;
use super::medium;
use super::power::{power_pending, reported};
use super::transition::{available, pass};
use super::view::View;
use super::wait::{is_due, sleep_on, unexpected};
use crate::decision::{Action, Change, Decision, Outcome};
use model::boot::BootStart;
use model::history::{EventKind, Severity};
use model::image::{BOOT_INSTANCE, is_step};
use model::kind::After;
use model::provision::Verb;
use model::ramdisk_deploy::is_deploy_step;
use model::request::{Policy, RESCUE_HASH, begin, event};
use model::run::{Cursor, Run};
use model::{Basis, CatalogueStep, PowerState, PowerTarget, ProvisionState, RunKind};

pub(super) fn decide(view: &View) -> Decision {
    if let Some(eject) = medium::eject_first(view) {
        return eject;
    }
    if fast_track::keeps(view) {
        return Decision::Record(Box::new(fast_track::kept(finished(view), view.snapshot.now)));
    }
    if nothing_to_stop(view) {
        return Decision::Record(Box::new(finished(view)));
    }
    if !is_due(view.snapshot) {
        return sleep_on(&view.snapshot.node);
    }
    let restarts = view.run.cursor == Cursor::Restart;
    if !restarts && logs::before_the_end(view) {
        return Decision::Act(logs::action(&view.snapshot.node));
    }
    Decision::Act(match (restarts, resets(view)) {
        (true, _) => Action::SetPower(PowerTarget::On),
        (false, true) => Action::SetPower(PowerTarget::Reboot),
        (false, false) if view.snapshot.node.power_state.is_none() => Action::ReadPower,
        (false, false) => Action::SetPower(PowerTarget::Off),
    })
}

/// Whether the node is reset in the place of being powered off: it is never powered off, or could not be seen off.
fn resets(view: &View) -> bool {
    view.snapshot.node.never_powers_off() || view.run.boot_start == BootStart::ResetAccepted
}

/// Whether the node may keep its power state and its ramdisk.
fn nothing_to_stop(view: &View) -> bool {
    match view.run.kind.after() {
        After::Off => !view.run.booted || (stays_on(view) && view.run.kind.steps().is_some()),
        After::Workload => !view.run.booted || is_booted_by_a_step(view),
        // The cleaning that follows begins with a reset. One now, too, could use up the boot device that is set for one boot.
        After::AlwaysOff => resets(view) && policy(view).cleans(&view.snapshot.node),
        After::AlwaysWorkload => false,
        After::Ramdisk => true,
    }
}

/// The plan's own step has started the node from its disk, or with its user's ramdisk.
fn is_booted_by_a_step(view: &View) -> bool {
    let starts = |step: &CatalogueStep| is_step(step, BOOT_INSTANCE) || is_deploy_step(step);
    view.run.plan.iter().flatten().any(|planned| starts(&planned.step))
}

fn policy(view: &View) -> Policy {
    Policy { automated_clean: view.settings.automated_clean_enable }
}

fn stays_on(view: &View) -> bool {
    view.settings.stay_on_after_cleaning
}

pub(super) fn apply_outcome(view: &View, action: &Action, outcome: Outcome) -> Change {
    if let Action::CollectLogs(name) = action {
        return logs::apply_outcome(view.with_run(|_| {}), name, outcome, view.snapshot.now);
    }
    if *action == Action::EjectMedium {
        return medium::ejected(view, outcome);
    }
    let restarts = view.run.cursor == Cursor::Restart;
    if let Some(state) = reported(&outcome) {
        return powered(view, action, state);
    }
    match outcome {
        Outcome::Failed(error) => {
            let doing = view.run.kind.doing();
            let what = if restarts { "on" } else { "off" };
            retry_or_fail(view, error, &format!("Failed to power {what} the node after {doing}"))
        }
        other => fail::failed(view, &unexpected("power", &other).text),
    }
}

/// The outcome of a power action, of which this power state was reported.
fn powered(view: &View, action: &Action, state: Option<PowerState>) -> Change {
    let restarts = view.run.cursor == Cursor::Restart;
    match (action, state) {
        (Action::ReadPower, None) => view.with_run(|run| run.boot_start = BootStart::ResetAccepted),
        (Action::ReadPower, Some(PowerState::On)) => {
            let mut change = view.with_run(|_| {});
            change.node.power_state = state;
            change
        }
        (_, Some(PowerState::On)) if restarts => {
            let mut change = finished(view);
            change.node.power_state = state;
            change
        }
        (_, Some(PowerState::Off)) if !restarts => {
            let workload = matches!(view.run.kind.after(), After::Workload | After::AlwaysWorkload);
            stopped(if workload { view.advance(Cursor::Restart) } else { finished(view) }, state)
        }
        // The reset has started what is on the disk: the workload, if there is one.
        (Action::SetPower(PowerTarget::Reboot), _) => stopped(finished(view), state),
        (_, state) => power_pending(view, state, if restarts { PowerState::On } else { PowerState::Off }),
    }
}

/// The ramdisk has stopped, and its agent with it.
fn stopped(mut change: Change, state: Option<PowerState>) -> Change {
    change.node.power_state = state;
    change.forget_agent = true;
    change
}

/// The node moves on. Only if every step has a stored success.
fn finished(view: &View) -> Change {
    let (now, kind) = (view.snapshot.now, view.run.kind);
    let has_steps = kind.steps().is_some() || view.run.plan.is_some();
    if has_steps && !view.run.all_succeeded() {
        let doing = kind.doing();
        let text = format!("internal: {doing} was about to end with steps that have no stored success");
        return fail::failed(view, &text);
    }
    if hello::is_missing(view) {
        return fail::failed(
            view,
            "internal: the deployment was about to end without the hello of its instance",
        );
    }
    let mut change = view.advance(Cursor::Done);
    let node = &mut change.node;
    node.last_error = None;
    if let Some(steps) = kind.steps() {
        node.forget_steps(steps);
    }
    change.events.push(event(EventKind::Momentary, Severity::Info, kind.momentary().into(), now));
    let cause = match (kind.steps(), view.run.plan.as_ref()) {
        (Some(_), Some(plan)) => format!("all {} steps succeeded", plan.len()),
        _ => format!("{} is done", kind.doing()),
    };
    match kind {
        RunKind::AutomatedClean if view.snapshot.node.retired => {
            pass(&mut change, Verb::Manage, &format!("{cause}; the node is retired"), now);
        }
        RunKind::AutomatedClean => match basis::of_cleaning(&view.snapshot.node.driver, view.run) {
            Ok(basis) => available(&mut change, basis, &cause, now),
            Err(text) => return fail::failed(view, &text),
        },
        RunKind::Delete => torn_down(view, &mut change),
        RunKind::Unrescue => {
            change.node.instance_info.remove(RESCUE_HASH);
            pass(&mut change, Verb::Done, &cause, now);
        }
        _ => pass(&mut change, kind.success(), &cause, now),
    }
    change
}

/// Remove what the deployment added, then clean the node unless automated cleaning is switched off. A retired node never
/// becomes available (specs/node-retirement.txt; Ironic omits that check here, 05-experiments 5).
fn torn_down(view: &View, change: &mut Change) {
    let now = view.snapshot.now;
    let node = &mut change.node;
    node.instance_info.clear();
    node.instance_uuid = None;
    node.root_disk = None;
    pass(change, Verb::Clean, "the workload is torn down", now);
    if policy(view).cleans(&change.node) {
        // The request that asked for the tear-down asked for this, too.
        let (request_id, sender) = (view.run.request_id.clone(), view.run.sender.clone());
        let run = Run { request_id, sender, ..Run::new(RunKind::AutomatedClean, now) };
        begin(&mut change.node, run, ProvisionState::Cleaning, now);
        return;
    }
    let cause = "automated cleaning is switched off, nothing was erased";
    if change.node.retired {
        pass(change, Verb::Manage, &format!("{cause}; the node is retired"), now);
    } else {
        available(change, Basis::NotCleaned, cause, now);
    }
}
