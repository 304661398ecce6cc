//! One file a provision state. `decide` says what comes next, `absorb` what an outcome means; both are pure.

mod boot;
mod cleaning;
mod end;
mod issued;
mod resting;
mod steps;
mod verifying;

use crate::decision::{Change, Decision, Deed, Outcome, Snapshot};
use crate::settings::Settings;
use model::provision::{Verb, transition};
use model::request::transition_event;
use model::{Node, ProvisionState, Timestamp, Wait};
use std::time::Duration;

/// What to do next for the node of this snapshot.
pub fn decide(snapshot: &Snapshot, settings: &Settings) -> Decision {
    match snapshot.node.provision_state {
        ProvisionState::Verifying => verifying::decide(snapshot, settings),
        ProvisionState::Cleaning | ProvisionState::CleanWait => cleaning::decide(snapshot, settings),
        _ => resting::decide(snapshot, settings),
    }
}

/// What an outcome changes. The node in the snapshot is the one that `decide` saw.
pub fn absorb(snapshot: &Snapshot, deed: &Deed, outcome: Outcome, settings: &Settings) -> Change {
    match snapshot.node.provision_state {
        ProvisionState::Verifying => verifying::absorb(snapshot, outcome, settings),
        ProvisionState::Cleaning | ProvisionState::CleanWait => {
            cleaning::absorb(snapshot, deed, outcome, settings)
        }
        _ => resting::absorb(snapshot, deed, outcome, settings),
    }
}

/// Whether the stored time for the next look has come. Own writes ring the bell too: what is paced by a
/// pause must look at the clock and not at the bell.
fn is_due(snapshot: &Snapshot) -> bool {
    snapshot.node.next_wake_at.is_none_or(|at| at <= snapshot.now)
}

/// Sleep until the stored time.
fn sleep_on(node: &Node) -> Decision {
    Decision::Sleep { wait: node.wait.clone(), wake_at: node.next_wake_at }
}

/// The wait for `reason`: since when it already waits for this, else since now.
fn waiting(node: &Node, reason: &str, limit: Option<Duration>, now: Timestamp) -> Wait {
    match &node.wait {
        Some(wait) if wait.reason == reason => wait.clone(),
        _ => Wait { reason: reason.to_owned(), since: now, deadline: limit.map(|limit| now.after(limit)) },
    }
}

/// Whether a wait has gone past its deadline.
fn overdue(wait: &Wait, now: Timestamp) -> bool {
    wait.deadline.is_some_and(|deadline| deadline <= now)
}

/// An outcome that does not belong to its deed: a defect, reported and never guessed at.
fn unexpected(deed: &str, outcome: &Outcome) -> crate::decision::Trouble {
    crate::decision::Trouble {
        text: format!("internal: {deed} ended with {outcome:?}"),
        retryable: false,
        unreachable: false,
    }
}

/// Take the node through `verb`, keeping where the run is to end, and tell why.
fn pass(change: &mut Change, verb: Verb, cause: &str, now: Timestamp) {
    let from = change.node.provision_state;
    let target = change.node.target_provision_state;
    match transition(from, verb) {
        Ok(to) => {
            change.node.enter(to, target, now);
            change.events.push(transition_event(from, to, cause, now));
        }
        // A defect of this crate; the state stays and the reason is told.
        Err(refused) => change.node.last_error = Some(format!("internal: {refused} ({cause})")),
    }
}
