//! Fast track: the ramdisk of an automated cleaning keeps running while the node is AVAILABLE. A deployment begins in it if its
//! agent is alive, else with the ordinary power cycle; a node that is not deployed is powered off after a time.
//!
//! The agent keeps the token of its boot, and no other gets one: a lookup is given a token only while a run waits for its
//! agent (docs/decisions/0046).

use super::view::View;
use super::wait::{is_due, sleep_on};
use crate::decision::{Action, Change, Decision, Outcome, Snapshot};
use crate::settings::Settings;
use model::boot::BootStart;
use model::boot_proof;
use model::fast_track::{self, KeptRamdisk};
use model::history::{EventKind, Severity};
use model::request::event;
use model::run::Cursor;
use model::{Contact, Node, PowerState, PowerTarget, ProvisionState, RunKind, Timestamp};
use std::time::Duration;

/// Pause between two attempts to power an idle node off once the BMC has had its time.
const SLOW_PAUSE: Duration = Duration::from_secs(60);

/// Whether a cleaning that has succeeded leaves its ramdisk running. What has to be reset, because it cannot be seen off,
/// could not be powered off later either.
pub(super) fn keeps(view: &View) -> bool {
    view.run.kind == RunKind::AutomatedClean
        && view.run.booted
        && view.run.boot_start == BootStart::OffObserved
        && obstacle(view.snapshot, view.settings, last_heard(view.snapshot)).is_none()
}

/// The end of a cleaning, with its ramdisk left running.
pub(super) fn kept(mut ended: Change, now: Timestamp) -> Change {
    let available = ended.node.provision_state == ProvisionState::Available;
    if let Some(run) = ended.node.run.as_mut().filter(|_| available) {
        run.ramdisk_kept = Some(KeptRamdisk::Since(now));
        let text = "the ramdisk keeps running for a deployment (fast track)".to_owned();
        ended.events.push(event(EventKind::Agent, Severity::Info, text, now));
    }
    ended
}

/// The first move of a run in the ramdisk: none, if the one that was kept can be used.
pub(super) fn begin(view: &View) -> Change {
    if view.run.ramdisk_kept.is_none() {
        return view.advance(Cursor::PowerOff);
    }
    if let Some(why) = obstacle(view.snapshot, view.settings, last_heard(view.snapshot)) {
        return boots_again(view, &why);
    }
    let mut change = view.advance(Cursor::LearnSteps);
    if let Some(run) = &mut change.node.run {
        run.booted = true;
    }
    let text = "the deployment begins in the ramdisk that the cleaning left running (fast track)".to_owned();
    change.events.push(event(EventKind::Agent, Severity::Info, text, view.snapshot.now));
    change
}

/// The agent of the kept ramdisk was asked for its steps and did not report them: the node boots as without fast track.
pub(super) fn unanswered(view: &View, outcome: &Outcome) -> Option<Change> {
    view.run.ramdisk_kept?;
    match outcome {
        Outcome::Busy(text) => Some(boots_again(view, text)),
        Outcome::Failed(error) => Some(boots_again(view, &error.text)),
        _ => None,
    }
}

fn boots_again(view: &View, why: &str) -> Change {
    let text = format!("the ramdisk that the cleaning left running is not used: {why}; the node boots");
    let event = event(EventKind::Agent, Severity::Info, text, view.snapshot.now);
    view.advance(Cursor::PowerOff).with_event(event)
}

/// What becomes of a node at rest because of its ramdisk. An operator's maintenance leaves its power alone.
pub(super) fn decide(snapshot: &Snapshot, settings: &Settings) -> Option<Decision> {
    let node = &snapshot.node;
    match kept_at_rest(node, settings)? {
        KeptRamdisk::PoweringOff(_) if is_due(snapshot) => {
            Some(Decision::Act(Action::SetPower(PowerTarget::Off)))
        }
        KeptRamdisk::PoweringOff(_) => Some(sleep_on(node)),
        KeptRamdisk::Since(since) => {
            let why = over(snapshot, settings, since)?;
            let mut change = Change::of(node.clone());
            keep(&mut change.node, Some(KeptRamdisk::PoweringOff(snapshot.now)));
            change.node.next_wake_at = Some(snapshot.now);
            let text = format!("the kept ramdisk is powered off: {why}");
            Some(Decision::Record(Box::new(change.with_event(event(
                EventKind::Power,
                Severity::Info,
                text,
                snapshot.now,
            )))))
        }
    }
}

/// When a kept ramdisk is to be looked at again at the latest.
pub(super) fn look_again_at(snapshot: &Snapshot, settings: &Settings) -> Option<Timestamp> {
    let Some(KeptRamdisk::Since(since)) = kept_at_rest(&snapshot.node, settings) else { return None };
    let silent = listened(snapshot).after(Duration::from_secs(settings.fast_track_timeout_s));
    Some(idle_until(settings, since).map_or(silent, |idle| idle.min(silent)))
}

/// The outcome of powering an idle node off: repeated until it is seen off, less often after the BMC's time is over.
pub(super) fn powering_off(
    snapshot: &Snapshot,
    since: Timestamp,
    outcome: &Outcome,
    settings: &Settings,
) -> Change {
    let (now, mut change) = (snapshot.now, Change::of(snapshot.node.clone()));
    let why = match outcome {
        Outcome::Power(PowerState::Off) => {
            change.node.next_wake_at = None;
            return seen_off(change, now);
        }
        Outcome::Failed(error) => error.text.clone(),
        Outcome::Power(state) => format!("the BMC accepted it, and the node is still {}", state.as_str()),
        _ => "the BMC accepted it, and reports no power state".to_owned(),
    };
    let late = now.since(since) >= Duration::from_secs(settings.power_timeout_s);
    change.node.next_wake_at = Some(now.after(if late { SLOW_PAUSE } else { settings.retry_pause() }));
    if late && change.node.last_error.is_none() {
        let text = format!("Failed to power off the node, whose ramdisk is not needed any more: {why}");
        change.node.last_error = Some(text.clone());
        change.events.push(event(EventKind::Power, Severity::Error, text, now));
    }
    change
}

/// The node is off: its ramdisk has ended, and its agent's token with it.
pub(super) fn seen_off(mut change: Change, now: Timestamp) -> Change {
    let node = &mut change.node;
    if keep(node, None) {
        node.power_state = Some(PowerState::Off);
        change.forget_agent = true;
        let text = "the node is off, and its kept ramdisk has ended".to_owned();
        change.events.push(event(EventKind::Power, Severity::Info, text, now));
    }
    change
}

/// The ramdisk that is kept on a node at rest, where that is to end some time.
fn kept_at_rest(node: &Node, settings: &Settings) -> Option<KeptRamdisk> {
    let rests = matches!(node.provision_state, ProvisionState::Available | ProvisionState::Manageable);
    let ends = rests && !node.maintenance && !settings.stay_on_after_cleaning;
    node.run.as_ref().filter(|_| ends)?.ramdisk_kept
}

/// Store what becomes of the ramdisk. False if there was none.
fn keep(node: &mut Node, kept: Option<KeptRamdisk>) -> bool {
    let run = node.run.as_mut().filter(|run| run.ramdisk_kept.is_some());
    run.map(|run| run.ramdisk_kept = kept).is_some()
}

/// Why the ramdisk is not kept any longer.
fn over(snapshot: &Snapshot, settings: &Settings, since: Timestamp) -> Option<String> {
    if snapshot.node.provision_state != ProvisionState::Available {
        return Some("the node is not available any more".to_owned());
    }
    let idle = idle_until(settings, since).filter(|until| *until <= snapshot.now);
    idle.map(|_| format!("no deployment began within {} s", settings.fast_track_idle_s))
        .or_else(|| obstacle(snapshot, settings, Some(listened(snapshot))))
}

fn idle_until(settings: &Settings, since: Timestamp) -> Option<Timestamp> {
    (settings.fast_track_idle_s > 0).then(|| since.after(Duration::from_secs(settings.fast_track_idle_s)))
}

fn last_heard(snapshot: &Snapshot) -> Option<Timestamp> {
    snapshot.contact.last_heartbeat_at
}

/// When the agent was last heard; time in which no controller listened is no silence.
fn listened(snapshot: &Snapshot) -> Timestamp {
    last_heard(snapshot).map_or(snapshot.listening_since, |at| at.max(snapshot.listening_since))
}

/// Why no deployment can begin in the ramdisk that runs on the node, whose agent was heard last at this time.
fn obstacle(snapshot: &Snapshot, settings: &Settings, heard: Option<Timestamp>) -> Option<String> {
    let (node, contact) = (&snapshot.node, &snapshot.contact);
    // A value that is neither true nor false is refused by `validate`.
    let on = fast_track::is_on(&node.driver_info, settings.fast_track).unwrap_or(false);
    let by_agent = snapshot.abilities.as_ref().is_ok_and(|able| able.deploys_with_agent());
    let limit = Duration::from_secs(settings.fast_track_timeout_s);
    let silent = heard.is_none_or(|at| snapshot.now.since(at) >= limit);
    [
        (!on, "fast track is switched off"),
        (!by_agent, "the deploy interface uses no agent"),
        (node.retired, "the node is retired"),
        (node.maintenance, "the node is in maintenance"),
        (node.never_powers_off(), "the node is never powered off"),
        (node.power_state != Some(PowerState::On), "the node is not known to be on"),
        (!is_of_its_boot(contact), "no agent is known that has shown the nonce of this boot"),
        (is_unproved(snapshot, settings), "the node's TPM has not proved this boot, and that is required"),
        (contact.rival.is_some(), "another agent asked for its token, or the node booted again"),
    ]
    .into_iter()
    .find_map(|(applies, why)| applies.then(|| why.to_owned()))
    .or_else(|| silent.then(|| format!("its agent sent no heartbeat within {} s", limit.as_secs())))
}

/// Whether a proof of the boot is required, since before it or since, and there is none.
fn is_unproved(snapshot: &Snapshot, settings: &Settings) -> bool {
    let required = boot_proof::is_required(&snapshot.node.driver_info, settings.require_tpm).unwrap_or(true);
    required && snapshot.contact.proof.is_none()
}

/// Whether the contact is with an agent that showed the nonce of its boot, and has been heard.
fn is_of_its_boot(contact: &Contact) -> bool {
    let shown = contact.boot.as_ref().is_some_and(|boot| boot.shown);
    shown && contact.token.is_some() && contact.callback_url.is_some() && contact.unsigned.is_none()
}
