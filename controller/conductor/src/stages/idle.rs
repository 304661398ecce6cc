//! States without a run: power changes that users request, the periodic look at power and health, and a ramdisk that is
//! kept running.

use super::fast_track;
use super::logs;
use super::medium;
use super::wait::{is_due, is_overdue, sleep_on, waiting};
use crate::decision::{Action, Change, Decision, Outcome, Snapshot};
use crate::settings::Settings;
use model::fast_track::KeptRamdisk;
use model::history::{EventKind, Severity};
use model::request::event;
use model::{Health, Node, PowerState, ProvisionState, Timestamp};
use std::time::Duration;

pub(super) fn decide(snapshot: &Snapshot, settings: &Settings) -> Decision {
    let node = &snapshot.node;
    if logs::are_wanted(node) {
        return Decision::Act(logs::action(node));
    }
    if let Some(target) = node.target_power_state {
        return if is_due(snapshot) {
            Decision::Act(next_power_action(node, target))
        } else {
            sleep_on(node)
        };
    }
    if let Some(decision) = medium::at_rest(snapshot) {
        return decision;
    }
    if let Some(decision) = fast_track::decide(snapshot, settings) {
        return decision;
    }
    let is_synced = is_synced(node, settings);
    if is_synced && node.next_wake_at.is_some_and(|at| at <= snapshot.now) {
        return Decision::Act(Action::ReadState);
    }
    Decision::Sleep { wait: None, wake_at: wake_at(snapshot, settings, is_synced) }
}

/// When to look at the node again. Each heartbeat puts off when a kept ramdisk counts as silent: an earlier time that is
/// stored stays, so that a heartbeat does not write the node's row.
fn wake_at(snapshot: &Snapshot, settings: &Settings, is_synced: bool) -> Option<Timestamp> {
    let stored = snapshot.node.next_wake_at.filter(|at| *at > snapshot.now);
    let kept = fast_track::look_again_at(snapshot, settings);
    // A user's verb may have left a wake-up time that nothing needs.
    let own = stored.filter(|_| is_synced || kept.is_some());
    let sync = is_synced.then(|| snapshot.now.after(sync_pause(settings)));
    match (own.or(sync), kept) {
        (Some(at), Some(kept)) => Some(at.min(kept)),
        (at, kept) => at.or(kept),
    }
}

/// The request is sent once; after that only the power state is read, so that a reboot is one reboot.
fn next_power_action(node: &Node, target: model::PowerTarget) -> Action {
    if node.wait.is_some() { Action::ReadPower } else { Action::SetPower(target) }
}

/// Retired nodes are excluded from periodic tasks (specs/node-retirement.txt); nodes in ENROLL are not managed yet.
fn is_synced(node: &Node, settings: &Settings) -> bool {
    settings.power_sync_s > 0 && node.provision_state != ProvisionState::Enroll && !node.retired
}

fn sync_pause(settings: &Settings) -> Duration {
    Duration::from_secs(settings.power_sync_s.max(1))
}

pub(super) fn apply_outcome(
    snapshot: &Snapshot,
    action: &Action,
    outcome: Outcome,
    settings: &Settings,
) -> Change {
    if *action == Action::EjectMedium {
        return medium::ejected_at_rest(snapshot, outcome, settings);
    }
    let kept = snapshot.node.run.as_ref().and_then(|run| run.ramdisk_kept);
    if let (Some(KeptRamdisk::PoweringOff(since)), Action::SetPower(_)) = (kept, action) {
        return fast_track::powering_off(snapshot, since, &outcome, settings);
    }
    let is_off = matches!(outcome, Outcome::State(PowerState::Off, _));
    let change = power_outcome(snapshot, action, outcome, settings);
    if is_off { fast_track::seen_off(change, snapshot.now) } else { change }
}

/// The outcome of what a user asked for, or of a look at the node.
fn power_outcome(snapshot: &Snapshot, action: &Action, outcome: Outcome, settings: &Settings) -> Change {
    let now = snapshot.now;
    let mut node = snapshot.node.clone();
    let mut events = Vec::new();
    let pause = is_synced(&node, settings).then(|| now.after(sync_pause(settings)));
    if let Action::CollectLogs(name) = action {
        // A power change that a user requested in the meantime is due at once.
        node.next_wake_at = if node.target_power_state.is_some() { Some(now) } else { pause };
        return logs::apply_outcome(Change::of(node), name, outcome, now);
    }
    match (node.target_power_state, outcome) {
        (Some(target), Outcome::Power(state)) => {
            let reason = format!("the BMC to report {}", target.resulting_state().as_str());
            let wait = waiting(&node, &reason, Some(Duration::from_secs(settings.power_timeout_s)), now);
            node.power_state = Some(state);
            let reached = state == target.resulting_state();
            if reached || is_overdue(&wait, now) {
                let severity = if reached { Severity::Info } else { Severity::Error };
                let text = if reached {
                    format!("{} done", target.as_str())
                } else {
                    let text = format!(
                        "{} was accepted by the BMC but the node is still {} after {} s",
                        target.as_str(),
                        state.as_str(),
                        settings.power_timeout_s
                    );
                    node.last_error = Some(text.clone());
                    text
                };
                events.push(event(EventKind::Power, severity, text, now));
                node.target_power_state = None;
                node.wait = None;
                node.next_wake_at = pause;
            } else {
                node.wait = Some(wait);
                node.next_wake_at = Some(now.after(Duration::from_secs(1)));
            }
        }
        (Some(target), Outcome::PowerUnknown) => {
            let text = format!("{} was accepted by the BMC, which reports no power state", target.as_str());
            events.push(event(EventKind::Power, Severity::Info, text, now));
            node.power_state = None;
            node.target_power_state = None;
            node.wait = None;
            node.next_wake_at = pause;
        }
        (Some(target), Outcome::Failed(error)) => {
            // Reading may fail after the request was sent: keep reading until the deadline.
            let reading = *action == Action::ReadPower;
            let within = node.wait.as_ref().is_some_and(|wait| !is_overdue(wait, now));
            if reading && within && error.retryable {
                node.next_wake_at = Some(now.after(settings.retry_pause()));
            } else {
                let text = format!("Failed to change power state to '{}': {}", target.as_str(), error.text);
                events.push(event(EventKind::Power, Severity::Error, text.clone(), now));
                node.last_error = Some(text);
                node.target_power_state = None;
                node.wait = None;
                node.next_wake_at = pause;
            }
        }
        (None, Outcome::State(state, health)) => {
            if node.health != health {
                let word = |health: Option<Health>| health.map_or("None", Health::as_str);
                let (now_is, was) = (word(health), word(node.health));
                let text = format!("Node health status changed: health='{now_is}' (previously '{was}')");
                events.push(event(EventKind::Monitoring, Severity::Info, text, now));
            }
            node.health = health;
            if node.power_state != Some(state) {
                let text = format!("power state found to be {}", state.as_str());
                events.push(event(EventKind::Power, Severity::Info, text, now));
            }
            node.power_state = Some(state);
            node.next_wake_at = pause;
        }
        (_, _) => node.next_wake_at = pause,
    }
    Change { events, ..Change::of(node) }
}
