//! From a node in any power state to a ramdisk that has sent its first heartbeat.
//!
//! The node is always switched off first: an agent of an earlier boot must not be taken for the new one,
//! so its token is forgotten while the node is provably off.

use super::cleaning::View;
use super::{end, is_due, overdue, pass, sleep_on, unexpected, waiting};
use crate::decision::{Change, Decision, Deed, Outcome};
use model::history::{EventKind, Severity};
use model::provision::Verb;
use model::request::event;
use model::run::Cursor;
use model::{PowerState, PowerTarget};
use std::time::Duration;

pub(super) fn decide(view: &View) -> Decision {
    let snapshot = view.snapshot;
    match view.run.cursor {
        Cursor::AwaitAgent => await_agent(view),
        _ if !is_due(snapshot) => sleep_on(&snapshot.node),
        Cursor::PowerOff => Decision::Act(Deed::SetPower(PowerTarget::Off)),
        Cursor::SetBootDevice => Decision::Act(Deed::SetBootDevice),
        _ => Decision::Act(Deed::SetPower(PowerTarget::On)),
    }
}

fn await_agent(view: &View) -> Decision {
    let snapshot = view.snapshot;
    if snapshot.contact.callback_url.is_some() {
        let mut change = view.advance(Cursor::LearnSteps);
        pass(&mut change, Verb::Resume, "the agent sent its first heartbeat", snapshot.now);
        return Decision::Record(Box::new(change));
    }
    if let Some(change) = give_token_again(view) {
        return Decision::Record(Box::new(change));
    }
    let reason = "the ramdisk to boot and its agent to send a heartbeat";
    let limit = Duration::from_secs(view.settings.boot_timeout_s);
    let wait = waiting(&snapshot.node, reason, Some(limit), snapshot.now);
    if overdue(&wait, snapshot.now) {
        let text = format!(
            "Timeout reached while cleaning the node: no heartbeat of an agent within {} s of power-on. \
             Please check if the ramdisk responsible for the cleaning is running on the node.",
            limit.as_secs()
        );
        return Decision::Record(Box::new(end::failed(view, &text)));
    }
    let wake_at = wait.deadline;
    Decision::Sleep { wait: Some(wait), wake_at }
}

/// The ramdisk started over between its lookup and its first heartbeat: who asks now is the node.
pub(super) fn give_token_again(view: &View) -> Option<Change> {
    let (contact, node) = (&view.snapshot.contact, &view.snapshot.node);
    let (given, rival) = (contact.token_at?, contact.rival.as_ref()?);
    if contact.callback_url.is_some() || rival.at.since(given) < Duration::from_secs(15) {
        return None;
    }
    let text = "the agent that took the token fell silent before its first heartbeat and another asks for it";
    let told = event(EventKind::Agent, Severity::Info, text.into(), view.snapshot.now);
    let mut change = view.with_run(|_| {}).telling(told);
    change.node.wait = node.wait.clone();
    change.node.next_wake_at = node.next_wake_at;
    change.forget_agent = true;
    Some(change)
}

pub(super) fn absorb(view: &View, deed: &Deed, outcome: Outcome) -> Change {
    let now = view.snapshot.now;
    match (&view.run.cursor, outcome) {
        (Cursor::PowerOff, Outcome::Power(PowerState::Off)) => {
            let mut change = view.advance(Cursor::SetBootDevice);
            change.node.power_state = Some(PowerState::Off);
            change.forget_agent = true;
            change
        }
        (Cursor::PowerOff, Outcome::Power(state)) => power_pending(view, state, PowerState::Off),
        (Cursor::SetBootDevice, Outcome::Done) => view.advance(Cursor::PowerOn),
        (Cursor::PowerOn, Outcome::Power(PowerState::On)) => {
            let mut change = view.advance(Cursor::AwaitAgent);
            change.node.power_state = Some(PowerState::On);
            change.node.last_error = None;
            pass(&mut change, Verb::Wait, "powered on to boot the ramdisk from the network", now);
            change
        }
        (Cursor::PowerOn, Outcome::Power(state)) => power_pending(view, state, PowerState::On),
        (_, Outcome::Failed(trouble)) => {
            let what = match deed {
                Deed::SetBootDevice => "Failed to set the node to boot from the network",
                Deed::SetPower(PowerTarget::Off) => "Failed to power off the node before booting the ramdisk",
                _ => "Failed to power on the node to boot the ramdisk",
            };
            view.retry_or_fail(trouble, what)
        }
        (_, other) => {
            let trouble = unexpected(&format!("{deed:?}"), &other);
            view.retry_or_fail(trouble, "Failed to boot the ramdisk")
        }
    }
}

/// The BMC took the request and does not show it yet.
fn power_pending(view: &View, state: PowerState, wanted: PowerState) -> Change {
    let now = view.snapshot.now;
    let reason = format!("the BMC to report {}", wanted.as_str());
    let limit = Duration::from_secs(view.settings.power_timeout_s);
    let wait = waiting(&view.snapshot.node, &reason, Some(limit), now);
    if overdue(&wait, now) {
        let text = format!(
            "the BMC accepted {} but reports {} for {} s",
            wanted.as_str(),
            state.as_str(),
            limit.as_secs()
        );
        return end::failed(view, &text);
    }
    let mut change = view.with_run(|_| {});
    change.node.power_state = Some(state);
    change.node.wait = Some(wait);
    change.node.next_wake_at = Some(now.after(Duration::from_secs(1)));
    change
}
