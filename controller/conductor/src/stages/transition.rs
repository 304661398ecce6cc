//! Moves of a node through the provision state machine, each recorded as an event.

use crate::decision::Change;
use model::provision::{Verb, transition};
use model::request::{make_available, transition_event};
use model::{Basis, ProvisionState, Timestamp};

/// Move the node through `verb`, keep its target provision state, and record `cause`.
pub(super) fn pass(change: &mut Change, verb: Verb, cause: &str, now: Timestamp) {
    let from = change.node.provision_state;
    let target = change.node.target_provision_state;
    match transition(from, verb) {
        Ok(to) => {
            change.node.enter(to, target, now);
            // AVAILABLE is entered by `available` alone.
            if change.node.provision_state == to {
                change.events.push(transition_event(from, to, cause, now));
            }
        }
        // A defect of this crate: the state stays, and the reason is shown.
        Err(refused) => change.node.last_error = Some(format!("internal: {refused} ({cause})")),
    }
}

/// Make the node AVAILABLE on this basis after a success, and record `cause`.
pub(super) fn available(change: &mut Change, basis: Basis, cause: &str, now: Timestamp) {
    match transition(change.node.provision_state, Verb::Done) {
        Ok(ProvisionState::Available) => {
            change.events.push(make_available(&mut change.node, basis, cause, now));
        }
        _ => change.node.last_error = Some(format!("internal: no way from here to available ({cause})")),
    }
}

/// To the state in which the conductor itself works (CLEANING, not CLEANWAIT), if the node is not in it.
pub(super) fn at_work(change: &mut Change, cause: &str, now: Timestamp) {
    if transition(change.node.provision_state, Verb::Resume).is_ok() {
        pass(change, Verb::Resume, cause, now);
    }
}

/// To the state in which the conductor waits for the node, if there is one and the node is not in it. In CLEANING the
/// conductor works; in CLEANWAIT it waits for the ramdisk or an in-band step (specs/state-machine.txt).
pub(super) fn in_wait(change: &mut Change, cause: &str, now: Timestamp) {
    let waits = transition(change.node.provision_state, Verb::Wait);
    if waits.is_ok_and(|to| to != change.node.provision_state) {
        pass(change, Verb::Wait, cause, now);
    }
}
