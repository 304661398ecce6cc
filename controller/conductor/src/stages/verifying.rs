//! VERIFYING and ADOPTING: connect to the BMC and check that it can be used (specs/state-machine.txt: "this must involve actually
//! going out and confirming that the credentials work").

use super::power::reported;
use super::transition::pass;
use super::wait::{is_due, is_overdue, sleep_on, unexpected, waiting};
use crate::decision::{Action, Change, Decision, Outcome, Snapshot};
use crate::settings::Settings;
use model::history::{EventKind, Severity};
use model::provision::Verb;
use model::request::event;
use model::{PowerState, PowerTarget, ProvisionState};
use std::time::Duration;

const REASON: &str = "the BMC to answer";

pub(super) fn decide(snapshot: &Snapshot) -> Decision {
    if is_due(snapshot) { Decision::Act(Action::VerifyBmc) } else { sleep_on(&snapshot.node) }
}

pub(super) fn apply_outcome(snapshot: &Snapshot, outcome: Outcome, settings: &Settings) -> Change {
    let now = snapshot.now;
    let mut node = snapshot.node.clone();
    let adopts = node.provision_state == ProvisionState::Adopting;
    if let Some(state) = reported(&outcome) {
        node.power_state = state;
        node.last_error = None;
        node.wait = None;
        node.next_wake_at = Some(now.after(Duration::from_secs(settings.power_sync_s.max(1))));
        let powers_off = settings.power_off_after_verifying && !node.never_powers_off();
        if powers_off && state == Some(PowerState::On) && !adopts {
            node.target_power_state = Some(PowerTarget::Off);
            node.next_wake_at = Some(now);
        }
        let passed = if adopts { "ADOPTED" } else { "VERIFIED" };
        let mut change =
            Change::of(node).with_event(event(EventKind::Momentary, Severity::Info, passed.into(), now));
        pass(&mut change, Verb::Done, "the BMC answered and accepted the credentials", now);
        return change;
    }
    let error = match outcome {
        Outcome::Failed(error) => error,
        other => unexpected("verify the BMC", &other),
    };
    let wait = waiting(&node, REASON, settings.budget(node.provision_state), now);
    if error.retryable && !is_overdue(&wait, now) {
        node.last_error = Some(error.text);
        node.wait = Some(wait);
        node.next_wake_at = Some(now.after(settings.retry_pause()));
        return Change::of(node);
    }
    let text = format!("Failed to {} the node: {}", if adopts { "adopt" } else { "verify" }, error.text);
    node.last_error = Some(text.clone());
    node.wait = None;
    node.next_wake_at = None;
    let mut change = Change::of(node);
    pass(&mut change, Verb::Fail, &text, now);
    if let Some(failure) = change.events.last_mut() {
        failure.severity = Severity::Error;
    }
    change
}
