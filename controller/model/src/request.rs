//! How a user's request changes a node: verbs and power. Pure; the API stores the result, the conductor acts on it.

use crate::basis::Basis;
use crate::fast_track;
use crate::hello::Hello;
use crate::history::{Event, EventKind, Severity};
use crate::image::{BOOT_INSTANCE, CONFIGDRIVE, is_step};
use crate::kind::RunKind;
use crate::node::Node;
use crate::power::PowerTarget;
use crate::provision::{Budget, ProvisionState, Verb, transition};
use crate::request_sender::RequestSender;
use crate::run::{Cursor, Run};
use crate::step::{RequestedStep, StepKind, StepResult};
use crate::time::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

/// Key of `instance_info` that keeps the hash of the rescue password. A secret.
pub const RESCUE_HASH: &str = "hashed_rescue_password";
/// Key of `instance_info` with the public keys that may log in to the rescue ramdisk, besides the password.
pub const RESCUE_KEYS: &str = "rescue_authorized_keys";

/// Longest reason of an override, in characters.
pub const LONGEST_REASON: usize = 1000;

/// Settings that change the meaning of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// `automated_clean_enable`; a node's own `automated_clean` wins.
    pub automated_clean: bool,
}

impl Policy {
    /// Whether this node is cleaned before it becomes available.
    pub fn cleans(self, node: &Node) -> bool {
        node.automated_clean.unwrap_or(self.automated_clean)
    }
}

/// A verb with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct VerbRequest {
    /// The verb.
    pub verb: Verb,
    /// Steps by kind: clean steps are required with `clean`, service steps with `service`; deploy steps are optional with a
    /// deployment. Any other combination is rejected.
    pub steps: BTreeMap<StepKind, Vec<RequestedStep>>,
    /// Deploy steps of the templates that the instance's traits name.
    pub templates: Vec<RequestedStep>,
    /// Manual cleaning or service without the ramdisk.
    pub disable_ramdisk: bool,
    /// Hash of the rescue password.
    pub rescue_hash: Option<String>,
    /// Data for the instance's first boot.
    pub configdrive: Option<Value>,
    /// Why an administrator overrides.
    pub reason: Option<String>,
    /// Id of the API request.
    pub request_id: Option<String>,
    /// Its sender.
    pub sender: Option<RequestSender>,
}

impl VerbRequest {
    /// A verb alone.
    pub fn of(verb: Verb) -> Self {
        Self {
            verb,
            steps: BTreeMap::new(),
            templates: Vec::new(),
            disable_ramdisk: false,
            rescue_hash: None,
            configdrive: None,
            reason: None,
            request_id: None,
            sender: None,
        }
    }

    /// With steps of a kind.
    #[must_use]
    pub fn with_steps(mut self, kind: StepKind, steps: Vec<RequestedStep>) -> Self {
        self.steps.insert(kind, steps);
        self
    }
}

/// Why a request was rejected. Nothing has changed.
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
    /// `clean` without steps, or steps with a verb they do not belong to (400).
    #[error("{0}")]
    Steps(String),
    /// `provide`, `active`, `adopt` or an override for a retired node (409, specs/node-retirement.txt).
    #[error("The {operation} operation can't be performed on node {node} because it is retired.")]
    Retired {
        /// `providing`, `provisioning`, `adopting`.
        operation: &'static str,
        /// The node.
        node: Uuid,
    },
    /// Not in maintenance (400).
    #[error("The {operation} operation can't be performed on node {node} because it's in maintenance mode.")]
    Maintenance {
        /// `provisioning`, `rescuing`, `unrescuing`.
        operation: &'static str,
        /// The node.
        node: Uuid,
    },
    /// A protected node is neither deleted nor rebuilt (403).
    #[error("Node {0} is protected and cannot be undeployed, rebuilt or deleted")]
    Protected(Uuid),
    /// `rescue` without a password (400).
    #[error("A non-empty \"rescue_password\" is required when setting target provision state to rescue")]
    RescuePassword,
    /// An override without a reason, or with one longer than [`LONGEST_REASON`] (400).
    #[error(
        "A \"reason\" of 1 to {} characters is required when setting target provision state to available",
        LONGEST_REASON
    )]
    Reason,
    /// Power may not be touched while the controller works on the node (409, specs/cleaning-states.txt).
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
    Event::new(kind, severity, text, now)
}

/// The event of a change of provision state, with its cause.
pub fn transition_event(from: ProvisionState, to: ProvisionState, cause: &str, now: Timestamp) -> Event {
    let severity = if to.as_str().ends_with("failed") { Severity::Error } else { Severity::Info };
    event(EventKind::Transition, severity, format!("{} -> {}: {cause}", from.as_str(), to.as_str()), now)
}

/// Whether the hello of the instance may come: it was asked for, has not come, and the step that starts the instance is under
/// way. What comes earlier does not come from the instance.
pub fn awaits_hello(run: &Run) -> bool {
    let starting = || run.current().is_some_and(|planned| is_step(&planned.step, BOOT_INSTANCE));
    run.hello.as_ref().is_some_and(|hello| hello.heard_at.is_none())
        && match run.cursor {
            Cursor::AwaitHello { .. } => true,
            Cursor::OutOfBand { .. } => starting(),
            _ => false,
        }
}

/// The node after the hello that its run awaits, and the event of that; `None` where no hello is awaited.
pub fn accept_hello(node: &Node, now: Timestamp) -> Option<(Node, Event)> {
    node.run.as_ref().filter(|run| awaits_hello(run))?;
    let mut node = node.clone();
    node.run.as_mut()?.hello.as_mut()?.heard_at = Some(now);
    node.next_wake_at = Some(now);
    let text = "the instance has said hello".to_owned();
    Some((node, event(EventKind::Step, Severity::Info, text, now)))
}

/// Make the node AVAILABLE on this basis, and the event of that. Every way into the state goes through here.
pub fn make_available(node: &mut Node, basis: Basis, cause: &str, now: Timestamp) -> Event {
    let (from, cause) = (node.provision_state, format!("{cause}; basis: {basis}"));
    node.make_available(basis, now);
    transition_event(from, node.provision_state, &cause, now)
}

/// The node after `request`, and the events of the change.
pub fn apply_verb(
    node: &Node,
    request: VerbRequest,
    policy: Policy,
    now: Timestamp,
) -> Result<(Node, Vec<Event>), RequestError> {
    use ProvisionState::{Cleaning, Deleting};
    let (verb, state) = (request.verb, node.provision_state);
    let refused = || RequestError::State { verb: verb.as_str(), node: node.uuid, state: state.as_str() };
    // Events of the conductor. `cleaning | manage`, the end of a manual clean, and `deleting | clean` too.
    let internal = matches!(verb, Verb::Done | Verb::Fail | Verb::Hold | Verb::Wait | Verb::Resume);
    if internal || matches!(state, Cleaning | Deleting) {
        return Err(refused());
    }
    let to = transition(state, verb).map_err(|_| refused())?;
    check_steps(verb, &request.steps)?;
    check_node(node, verb)?;
    if verb == Verb::Rescue && request.rescue_hash.is_none() {
        return Err(RequestError::RescuePassword);
    }
    if verb == Verb::Override && reason(&request).is_none() {
        return Err(RequestError::Reason);
    }
    let mut changed = node.clone();
    let event = match run_kind(node, verb, policy) {
        Some(kind) => start_run(&mut changed, kind, request, to, now),
        None => change_state(&mut changed, &request, to, now).ok_or_else(refused)?,
    };
    changed.wait = None;
    changed.next_wake_at = Some(now);
    Ok((changed, vec![event]))
}

/// The kind of run that a verb begins, if it begins one.
fn run_kind(node: &Node, verb: Verb, policy: Policy) -> Option<RunKind> {
    Some(match verb {
        Verb::Provide if node.provision_state == ProvisionState::Manageable && !policy.cleans(node) => {
            return None;
        }
        Verb::Provide => RunKind::AutomatedClean,
        Verb::Clean => RunKind::ManualClean,
        Verb::Deploy => RunKind::Deploy,
        Verb::Rebuild => RunKind::Rebuild,
        Verb::Service => RunKind::Service,
        Verb::Inspect => RunKind::Inspect,
        Verb::Rescue => RunKind::Rescue,
        Verb::Unrescue => RunKind::Unrescue,
        Verb::Delete => RunKind::Delete,
        _ => return None,
    })
}

fn start_run(
    node: &mut Node,
    kind: RunKind,
    mut request: VerbRequest,
    to: ProvisionState,
    now: Timestamp,
) -> Event {
    let from = node.provision_state;
    let mut run = Run::new(kind, now);
    run.requested = kind.steps().and_then(|kind| request.steps.remove(&kind)).unwrap_or_default();
    run.templates = request.templates;
    run.disable_ramdisk = request.disable_ramdisk;
    if matches!(kind, RunKind::Deploy | RunKind::Rebuild) {
        run.hello = Hello::wanted(&node.instance_info);
    }
    run.request_id = request.request_id;
    run.sender = request.sender;
    begin(node, run, to, now);
    if kind == RunKind::Inspect {
        node.inspection_started_at = Some(now);
        node.inspection_finished_at = None;
    }
    node.instance_info.extend(request.rescue_hash.map(|hash| (RESCUE_HASH.into(), hash.into())));
    node.instance_info.extend(request.configdrive.map(|configdrive| (CONFIGDRIVE.into(), configdrive)));
    transition_event(from, to, &by_user(request.verb), now)
}

/// Do what a verb does that begins no run; `None` for a verb that always begins one.
fn change_state(node: &mut Node, request: &VerbRequest, to: ProvisionState, now: Timestamp) -> Option<Event> {
    use ProvisionState::{AdoptFail, CleanFail, Enroll, InspectFail, ServiceFail};
    let (verb, from) = (request.verb, node.provision_state);
    let cause = by_user(verb);
    let (to, target, cause) = match verb {
        Verb::Provide => {
            let cause = format!("{cause}; automated cleaning is switched off, nothing was erased");
            return Some(make_available(node, Basis::NotCleaned, &cause, now));
        }
        Verb::Override => {
            node.forget_steps(StepKind::Clean);
            node.last_error = None;
            clear_own_fault(node);
            let reason = reason(request)?.to_owned();
            let cause = format!(
                "override by an administrator ({reason}): the cleaning that failed is not made good, and this \
                 yields no certificate"
            );
            let basis = Basis::Override { reason, by: request.sender.clone() };
            return Some(make_available(node, basis, &cause, now));
        }
        Verb::Abort if from == ServiceFail => {
            node.forget_steps(StepKind::Service);
            (to, None, format!("{cause}; the node is left as it is, a reboot starts its workload"))
        }
        Verb::Abort => {
            // The state changes when the step has really stopped: the conductor cancels it and waits.
            if let Some(run) = &mut node.run {
                run.abort = true;
            }
            return Some(event(EventKind::Step, Severity::Info, format!("abort asked for: {cause}"), now));
        }
        Verb::Unhold => {
            go_on(node, now);
            (to, node.target_provision_state, cause)
        }
        Verb::Manage => {
            if from == CleanFail {
                // The run has ended and keeps its records until the next begins; no step is current.
                node.forget_steps(StepKind::Clean);
            }
            if matches!(from, Enroll | InspectFail | AdoptFail) {
                node.last_error = None;
            }
            (to, None, cause)
        }
        Verb::Adopt => {
            node.last_error = None;
            (to, None, cause)
        }
        _ => return None,
    };
    node.enter(to, target, now);
    Some(transition_event(from, to, &cause, now))
}

/// The reason of an override, if it is one.
fn reason(request: &VerbRequest) -> Option<&str> {
    let given = request.reason.as_deref().map(str::trim)?;
    (1..=LONGEST_REASON).contains(&given.chars().count()).then_some(given)
}

/// The cause of an event.
fn by_user(verb: Verb) -> String {
    format!("verb {:?} of a user", verb.as_str())
}

/// Put a fresh run on the node: nothing of an earlier one may be taken for a part of it. Only what the node booted
/// from before that one, and was not set again when it failed, is still to be set; and a deployment may begin in the
/// ramdisk that a cleaning left running.
pub fn begin(node: &mut Node, mut run: Run, state: ProvisionState, now: Timestamp) {
    let target = match run.kind {
        RunKind::ManualClean => Some(ProvisionState::Manageable),
        _ => None,
    };
    for kind in StepKind::ALL {
        node.forget_steps(kind);
    }
    run.ramdisk_kept = fast_track::inherited(node, run.kind);
    run.boot_before = node.run.take().and_then(|earlier| earlier.boot_before);
    node.run = Some(run);
    node.last_error = None;
    clear_own_fault(node);
    node.enter(state, target, now);
}

/// Maintenance that a failed run has set ends with the next one.
fn clear_own_fault(node: &mut Node) {
    let own = |fault: &str| RunKind::ALL.iter().any(|kind| kind.fault() == Some(fault));
    if node.fault.as_deref().is_some_and(own) {
        node.maintenance = false;
        node.maintenance_reason = None;
        node.fault = None;
    }
}

/// The step `hold` has ended.
fn go_on(node: &mut Node, now: Timestamp) {
    let Some(run) = &mut node.run else { return };
    if let (Cursor::Hold, Some(index)) = (&run.cursor, run.index) {
        let command_id = format!("{}-{index}-hold", run.id);
        let result = StepResult::success(index, command_id, now, Value::Null);
        run.results.push(result);
        run.cursor = Cursor::NextStep;
    }
}

fn check_steps(verb: Verb, steps: &BTreeMap<StepKind, Vec<RequestedStep>>) -> Result<(), RequestError> {
    let has = |kind: StepKind| steps.get(&kind).is_some_and(|steps| !steps.is_empty());
    for (kind, verbs, names, required) in [
        (StepKind::Clean, [Verb::Clean, Verb::Clean], "clean", true),
        (StepKind::Service, [Verb::Service, Verb::Service], "service", true),
        (StepKind::Deploy, [Verb::Deploy, Verb::Rebuild], "active, deploy or rebuild", false),
    ] {
        let field = kind.steps_field();
        let belongs = verbs.contains(&verb);
        if has(kind) && !belongs {
            let text = format!("\"{field}\" is only valid when setting target provision state to {names}");
            return Err(RequestError::Steps(text));
        }
        if belongs && required && !has(kind) {
            let text = format!("\"{field}\" is required when setting target provision state to {names}");
            return Err(RequestError::Steps(text));
        }
    }
    Ok(())
}

/// What the node's flags forbid.
pub(crate) fn check_node(node: &Node, verb: Verb) -> Result<(), RequestError> {
    let uuid = node.uuid;
    if node.retired {
        let operation = match verb {
            Verb::Provide | Verb::Override => Some("providing"),
            Verb::Deploy => Some("provisioning"),
            Verb::Adopt => Some("adopting"),
            _ => None,
        };
        if let Some(operation) = operation {
            return Err(RequestError::Retired { operation, node: uuid });
        }
    }
    if node.protected && matches!(verb, Verb::Delete | Verb::Rebuild) {
        return Err(RequestError::Protected(uuid));
    }
    if node.maintenance {
        let operation = match verb {
            Verb::Deploy | Verb::Rebuild => Some("provisioning"),
            Verb::Rescue => Some("rescuing"),
            Verb::Unrescue => Some("unrescuing"),
            _ => None,
        };
        if let Some(operation) = operation {
            return Err(RequestError::Maintenance { operation, node: uuid });
        }
    }
    Ok(())
}

/// Whether the power of a node may be changed.
///
/// # Errors
/// The controller works on it.
pub fn check_power(node: &Node) -> Result<(), RequestError> {
    let state = node.provision_state;
    let held =
        matches!(state, ProvisionState::CleanHold | ProvisionState::DeployHold | ProvisionState::ServiceHold);
    // In a state with a time limit the controller works on the node: a user must not change its power.
    if held || state.budget() != Budget::User {
        return Err(RequestError::PowerLocked { node: node.uuid, state: state.as_str() });
    }
    Ok(())
}

/// The node after a user asked for power.
pub fn apply_power(
    node: &Node,
    target: PowerTarget,
    now: Timestamp,
) -> Result<(Node, Vec<Event>), RequestError> {
    check_power(node)?;
    let mut changed = node.clone();
    changed.target_power_state = Some(target);
    if let Some(run) = &mut changed.run {
        // From now on the user decides about the power.
        run.ramdisk_kept = None;
    }
    changed.last_error = None;
    changed.next_wake_at = Some(now);
    let text = format!("{} asked for by a user", target.as_str());
    Ok((changed, vec![event(EventKind::Power, Severity::Info, text, now)]))
}
