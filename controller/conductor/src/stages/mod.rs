//! One file a stage. `decide` says what comes next, `apply_outcome` what an outcome means; both are pure.
//!
//! ```text
//! verifying.rs   VERIFYING, ADOPTING          run.rs          every state with a run: dispatch on its cursor
//! resting.rs     everything else               ├ start.rs      what the run needs
//!                                              ├ boot.rs       to a ramdisk that was heard
//!                                              ├ learn.rs      the agent's steps, the plan
//!                                              ├ steps.rs      the next step, reserved steps
//!                                              ├ issued.rs     a step of the agent; evidence.rs: what it signed
//!                                              ├ out_of_band.rs  a step of the controller
//!                                              ├ inspecting.rs the inventory
//!                                              └ end.rs        done; fail.rs: failed, aborted; logs.rs: what the
//!                                                              ramdisk logged
//! ```

mod boot;
mod end;
mod evidence;
mod fail;
mod inspecting;
mod issued;
mod learn;
mod logs;
mod out_of_band;
mod panicked;
mod resting;
mod run;
mod start;
mod steps;
mod verifying;

use crate::decision::{Action, Change, Decision, Outcome, Snapshot};
use crate::settings::Settings;
use model::provision::{Verb, transition};
use model::request::transition_event;
use model::{Node, ProvisionState, Timestamp, Wait};
pub use panicked::give_up;
use std::time::Duration;

/// What to do next for the node of this snapshot.
pub fn decide(snapshot: &Snapshot, settings: &Settings) -> Decision {
    match snapshot.node.provision_state {
        ProvisionState::Verifying | ProvisionState::Adopting => verifying::decide(snapshot),
        state if has_run(state) => run::decide(snapshot, settings),
        _ => resting::decide(snapshot, settings),
    }
}

/// What an outcome changes. The node in the snapshot is the one that `decide` saw.
pub fn apply_outcome(snapshot: &Snapshot, action: &Action, outcome: Outcome, settings: &Settings) -> Change {
    match snapshot.node.provision_state {
        ProvisionState::Verifying | ProvisionState::Adopting => {
            verifying::apply_outcome(snapshot, outcome, settings)
        }
        state if has_run(state) => run::apply_outcome(snapshot, action, outcome, settings),
        _ => resting::apply_outcome(snapshot, action, outcome, settings),
    }
}

/// States in which a run is under way.
fn has_run(state: ProvisionState) -> bool {
    use ProvisionState as P;
    matches!(
        state,
        P::Deploying
            | P::DeployWait
            | P::DeployHold
            | P::Cleaning
            | P::CleanWait
            | P::CleanHold
            | P::Deleting
            | P::Inspecting
            | P::InspectWait
            | P::Rescuing
            | P::RescueWait
            | P::Unrescuing
            | P::Servicing
            | P::ServiceWait
            | P::ServiceHold
    )
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

/// Sleep in `wait`, until its deadline at the latest.
fn sleep_in(wait: Wait) -> Decision {
    Decision::Sleep { wake_at: wait.deadline, wait: Some(wait) }
}

/// The wait for `reason`: since when it already waits for this, else since now.
fn waiting(node: &Node, reason: &str, limit: Option<Duration>, now: Timestamp) -> Wait {
    match &node.wait {
        Some(wait) if wait.reason == reason => wait.clone(),
        _ => Wait { reason: reason.to_owned(), since: now, deadline: limit.map(|limit| now.after(limit)) },
    }
}

/// The wait for an agent to be heard. Who could not be heard before the controller started gets as long as any
/// silence may last.
fn listening(snapshot: &Snapshot, settings: &Settings, reason: &str, limit: Duration) -> Wait {
    let mut wait = waiting(&snapshot.node, reason, Some(limit), snapshot.now);
    let patience = snapshot.listening_since.after(Duration::from_secs(settings.agent_silence_s));
    wait.deadline = wait.deadline.max(Some(patience));
    wait
}

/// Whether a wait has gone past its deadline.
fn overdue(wait: &Wait, now: Timestamp) -> bool {
    wait.deadline.is_some_and(|deadline| deadline <= now)
}

/// An outcome that does not belong to its action: a defect, reported and never guessed at.
fn unexpected(action: &str, outcome: &Outcome) -> crate::decision::ActionError {
    crate::decision::ActionError {
        text: format!("internal: {action} ended with {outcome:?}"),
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

/// To the state in which the controller itself is at work, if the node is not there.
fn at_work(change: &mut Change, cause: &str, now: Timestamp) {
    if transition(change.node.provision_state, Verb::Resume).is_ok() {
        pass(change, Verb::Resume, cause, now);
    }
}

/// To the state in which the node is awaited, if there is one and it is not there. CLEANING means that the
/// conductor is at work, CLEANWAIT that it waits for the ramdisk or an in-band step (specs/state-machine.txt).
fn in_wait(change: &mut Change, cause: &str, now: Timestamp) {
    let waits = transition(change.node.provision_state, Verb::Wait);
    if waits.is_ok_and(|to| to != change.node.provision_state) {
        pass(change, Verb::Wait, cause, now);
    }
}
