//! What a user's request does to a node: verbs and power. Pure; the API stores the outcome, the conductor
//! acts on it.

use crate::history::{Event, EventKind, Severity};
use crate::node::Node;
use crate::power::PowerTarget;
use crate::provision::{ProvisionState, Verb, transition};
use crate::run::{Cursor, Run, RunKind};
use crate::step::RequestedStep;
use crate::time::Timestamp;
use uuid::Uuid;

/// Settings that decide what a verb means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// `automated_clean_enable`; a node's own `automated_clean` wins.
    pub automated_clean: bool,
}

/// A verb with what comes along.
#[derive(Debug, Clone, PartialEq)]
pub struct VerbRequest {
    /// The verb.
    pub verb: Verb,
    /// Steps; required with `clean`, refused with any other.
    pub clean_steps: Option<Vec<RequestedStep>>,
}

/// Why a request was refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Not from this state (400).
    #[error(
        "The requested action \"{verb}\" can not be performed on node \"{node}\" while it is in state \"{state}\"."
    )]
    State {
        /// The verb.
        verb: &'static str,
        /// The node's UUID.
        node: Uuid,
        /// Its state.
        state: &'static str,
    },
    /// The verb exists but Anneal does not do it yet (400).
    #[error("The requested action \"{0}\" is not implemented by this controller yet; nothing was changed.")]
    NotBuilt(&'static str),
    /// `clean` without steps, or steps without `clean` (400).
    #[error("{0}")]
    Steps(&'static str),
    /// `provide` of a retired node (409, specs/node-retirement.txt).
    #[error("The providing operation can't be performed on node {0} because it is retired.")]
    Retired(Uuid),
    /// Power may not be touched while the node is being cleaned (409, specs/cleaning-states.txt).
    #[error("Power state of node {node} cannot be changed while it is in state \"{state}\".")]
    PowerLocked {
        /// The node.
        node: Uuid,
        /// Its state.
        state: &'static str,
    },
}

/// An event of this moment.
pub fn event(kind: EventKind, severity: Severity, text: String, now: Timestamp) -> Event {
    Event { uuid: Uuid::new_v4(), at: now, kind, severity, text }
}

/// The event of a change of provision state, with its cause.
pub fn transition_event(from: ProvisionState, to: ProvisionState, cause: &str, now: Timestamp) -> Event {
    let severity = if to.as_str().ends_with("failed") { Severity::Error } else { Severity::Info };
    event(EventKind::Transition, severity, format!("{} -> {}: {cause}", from.as_str(), to.as_str()), now)
}

/// The node after `request`, and the event that tells of it.
pub fn apply_verb(
    node: &Node,
    request: VerbRequest,
    policy: Policy,
    now: Timestamp,
) -> Result<(Node, Vec<Event>), RequestError> {
    use ProvisionState::{
        Available, CleanFail, CleanHold, CleanWait, Cleaning, Deleting, Enroll, Manageable,
    };
    let VerbRequest { verb, clean_steps } = request;
    let state = node.provision_state;
    let refused = RequestError::State { verb: verb.as_str(), node: node.uuid, state: state.as_str() };
    if !matches!(verb, Verb::Manage | Verb::Provide | Verb::Clean | Verb::Abort) {
        return Err(match transition(state, verb) {
            Ok(_) => RequestError::NotBuilt(verb.as_str()),
            Err(_) => refused,
        });
    }
    // `cleaning | manage`, the end of a manual clean, and `deleting | clean` are the conductor's own events.
    if matches!(state, Cleaning | Deleting) {
        return Err(refused);
    }
    let to = transition(state, verb).map_err(|_| refused.clone())?;
    match (verb, clean_steps.is_some()) {
        (Verb::Clean, false) => {
            return Err(RequestError::Steps(
                "\"clean_steps\" is required when setting target provision state to clean",
            ));
        }
        (Verb::Clean, true) => {}
        (_, true) => {
            return Err(RequestError::Steps(
                "\"clean_steps\" is only valid when setting target provision state to clean",
            ));
        }
        (_, false) => {}
    }
    if verb == Verb::Provide && node.retired {
        return Err(RequestError::Retired(node.uuid));
    }

    let mut changed = node.clone();
    let mut events = Vec::new();
    let cause = format!("verb {:?} of a user", verb.as_str());
    match (verb, state) {
        (Verb::Abort, CleanWait | CleanHold) => {
            // The state changes when the step has really stopped: the conductor tells the agent and waits.
            if let Some(run) = &mut changed.run {
                run.abort = true;
            }
            events.push(event(EventKind::Step, Severity::Info, format!("abort asked for: {cause}"), now));
        }
        (Verb::Provide, Manageable) if !node.automated_clean.unwrap_or(policy.automated_clean) => {
            changed.enter(Available, None, now);
            let cause = format!("{cause}; automated cleaning is switched off, nothing was erased");
            events.push(transition_event(state, Available, &cause, now));
        }
        (Verb::Provide | Verb::Clean, _) => {
            let manual = verb == Verb::Clean;
            changed.enter(Cleaning, Some(if manual { Manageable } else { Available }), now);
            changed.run = Some(Run {
                id: Uuid::new_v4(),
                kind: if manual { RunKind::ManualClean } else { RunKind::AutomatedClean },
                started_at: now,
                requested: clean_steps.unwrap_or_default(),
                plan: None,
                index: None,
                cursor: Cursor::PowerOff,
                hardware_manager_version: serde_json::Map::new(),
                results: Vec::new(),
                abort: false,
                interruptions: 0,
                replans: 0,
                attempts: 0,
            });
            changed.clean_step = None;
            changed.last_error = None;
            if state == CleanFail && node.fault.as_deref() == Some("clean failure") {
                changed.maintenance = false;
                changed.maintenance_reason = None;
                changed.fault = None;
            }
            events.push(transition_event(state, Cleaning, &cause, now));
        }
        (Verb::Manage, _) => {
            changed.enter(to, None, now);
            if state == CleanFail {
                // The run has ended and keeps its records until the next one begins; a step is no longer current.
                changed.clean_step = None;
            }
            if state == Enroll {
                changed.last_error = None;
            }
            events.push(transition_event(state, to, &cause, now));
        }
        _ => return Err(refused),
    }
    changed.wait = None;
    changed.next_wake_at = Some(now);
    Ok((changed, events))
}

/// The node after a user asked for power.
pub fn apply_power(
    node: &Node,
    target: PowerTarget,
    now: Timestamp,
) -> Result<(Node, Vec<Event>), RequestError> {
    use ProvisionState::{CleanHold, CleanWait, Cleaning};
    if matches!(node.provision_state, Cleaning | CleanWait | CleanHold) {
        return Err(RequestError::PowerLocked { node: node.uuid, state: node.provision_state.as_str() });
    }
    let mut changed = node.clone();
    changed.target_power_state = Some(target);
    changed.last_error = None;
    changed.next_wake_at = Some(now);
    let text = format!("{} asked for by a user", target.as_str());
    Ok((changed, vec![event(EventKind::Power, Severity::Info, text, now)]))
}
