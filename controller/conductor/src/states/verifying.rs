//! VERIFYING: go out and see that the BMC can be used (specs/state-machine.txt: "this must involve actually
//! going out and confirming that the credentials work").

use super::{is_due, overdue, sleep_on, waiting};
use crate::decision::{Change, Decision, Deed, Outcome, Snapshot};
use crate::settings::Settings;
use model::history::{EventKind, Severity};
use model::request::{event, transition_event};
use model::{PowerState, PowerTarget, ProvisionState};
use std::time::Duration;

const REASON: &str = "the BMC to answer";

pub(super) fn decide(snapshot: &Snapshot, _settings: &Settings) -> Decision {
    if is_due(snapshot) { Decision::Act(Deed::VerifyBmc) } else { sleep_on(&snapshot.node) }
}

pub(super) fn absorb(snapshot: &Snapshot, outcome: Outcome, settings: &Settings) -> Change {
    let now = snapshot.now;
    let mut node = snapshot.node.clone();
    let trouble = match outcome {
        Outcome::Power(state) => {
            node.power_state = Some(state);
            node.last_error = None;
            node.wait = None;
            node.next_wake_at = Some(now.after(Duration::from_secs(settings.power_sync_s.max(1))));
            if settings.power_off_after_verifying && state == PowerState::On {
                node.target_power_state = Some(PowerTarget::Off);
                node.next_wake_at = Some(now);
            }
            node.enter(ProvisionState::Manageable, None, now);
            return Change::of(node)
                .telling(event(EventKind::Momentary, Severity::Info, "VERIFIED".into(), now))
                .telling(transition_event(
                    ProvisionState::Verifying,
                    ProvisionState::Manageable,
                    "the BMC answered and accepted the credentials",
                    now,
                ));
        }
        Outcome::Failed(trouble) => trouble,
        other => super::unexpected("verify the BMC", &other),
    };
    let wait = waiting(&node, REASON, Some(Duration::from_secs(settings.verify_timeout_s)), now);
    if trouble.retryable && !overdue(&wait, now) {
        node.last_error = Some(trouble.text);
        node.wait = Some(wait);
        node.next_wake_at = Some(now.after(settings.retry_pause()));
        return Change::of(node);
    }
    let text = format!("Failed to verify the node: {}", trouble.text);
    node.last_error = Some(text.clone());
    node.wait = None;
    node.next_wake_at = None;
    node.enter(ProvisionState::Enroll, None, now);
    let mut told = transition_event(ProvisionState::Verifying, ProvisionState::Enroll, &text, now);
    told.severity = Severity::Error;
    Change::of(node).telling(told)
}
