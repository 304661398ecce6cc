//! The provision state machine: the only definition of the allowed transitions.
//!
//! The table is Ironic 39's (30 states), plus the retries from CLEANFAIL that
//! `specs/cleaning-states.txt` asks for. `tests/provision_table.rs` holds it equal to Ironic's.

use crate::table;
use serde::{Deserialize, Serialize};

/// The provision state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum ProvisionState {
    /// `enroll`, stable.
    Enroll,
    /// `manageable`, stable.
    Manageable,
    /// `available`, stable.
    Available,
    /// `active`, stable.
    Active,
    /// `error`, stable.
    Error,
    /// `rescue`, stable.
    Rescue,
    /// `verifying`.
    Verifying,
    /// `deploying`.
    Deploying,
    /// `wait call-back`.
    DeployWait,
    /// `deploy failed`.
    DeployFail,
    /// `deploy hold`.
    DeployHold,
    /// `cleaning`.
    Cleaning,
    /// `clean wait`.
    CleanWait,
    /// `clean failed`.
    CleanFail,
    /// `clean hold`.
    CleanHold,
    /// `deleting`.
    Deleting,
    /// `inspecting`.
    Inspecting,
    /// `inspect failed`.
    InspectFail,
    /// `inspect wait`.
    InspectWait,
    /// `adopting`.
    Adopting,
    /// `adopt failed`.
    AdoptFail,
    /// `rescuing`.
    Rescuing,
    /// `rescue wait`.
    RescueWait,
    /// `rescue failed`.
    RescueFail,
    /// `unrescuing`.
    Unrescuing,
    /// `unrescue failed`.
    UnrescueFail,
    /// `servicing`.
    Servicing,
    /// `service wait`.
    ServiceWait,
    /// `service failed`.
    ServiceFail,
    /// `service hold`.
    ServiceHold,
}

/// Wire string, budget and target of a state.
type Facts = (&'static str, Budget, Option<ProvisionState>);

/// Every state with its wire string, what bounds the time in it, and the stable state that it leads to (its
/// `target_provision_state`); none for a stable state, which a node leaves only on request.
const STATES: [(ProvisionState, Facts); 30] = {
    use Budget::*;
    use ProvisionState::*;
    [
        (Enroll, ("enroll", User, None)),
        (Manageable, ("manageable", User, None)),
        (Available, ("available", User, None)),
        (Active, ("active", User, None)),
        (Error, ("error", User, None)),
        (Rescue, ("rescue", User, None)),
        (Verifying, ("verifying", Verify, Some(Manageable))),
        (Deploying, ("deploying", Bmc, Some(Active))),
        (DeployWait, ("wait call-back", Ramdisk, Some(Active))),
        (DeployFail, ("deploy failed", User, Some(Active))),
        (DeployHold, ("deploy hold", User, Some(Active))),
        (Cleaning, ("cleaning", Bmc, Some(Available))),
        (CleanWait, ("clean wait", Ramdisk, Some(Available))),
        (CleanFail, ("clean failed", User, Some(Available))),
        (CleanHold, ("clean hold", User, Some(Available))),
        (Deleting, ("deleting", Bmc, Some(Available))),
        (Inspecting, ("inspecting", Bmc, Some(Manageable))),
        (InspectFail, ("inspect failed", User, Some(Manageable))),
        (InspectWait, ("inspect wait", Ramdisk, Some(Manageable))),
        (Adopting, ("adopting", Verify, Some(Active))),
        (AdoptFail, ("adopt failed", User, Some(Active))),
        (Rescuing, ("rescuing", Bmc, Some(Rescue))),
        (RescueWait, ("rescue wait", Ramdisk, Some(Rescue))),
        (RescueFail, ("rescue failed", User, Some(Rescue))),
        (Unrescuing, ("unrescuing", Bmc, Some(Active))),
        (UnrescueFail, ("unrescue failed", User, Some(Active))),
        (Servicing, ("servicing", Bmc, Some(Active))),
        (ServiceWait, ("service wait", Ramdisk, Some(Active))),
        (ServiceFail, ("service failed", User, Some(Active))),
        (ServiceHold, ("service hold", User, Some(Active))),
    ]
};

impl ProvisionState {
    /// Every state.
    pub const ALL: [Self; 30] = table::keys(STATES);

    /// The wire string.
    pub fn as_str(self) -> &'static str {
        let (_, (name, _, _)) = STATES[self as usize];
        name
    }

    /// The state a wire string names.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// The state that a wire string or a name of specs/state-machine.txt means: `clean failed`, `CLEANFAIL`;
    /// MANAGED is an older name of MANAGEABLE.
    pub fn named(text: &str) -> Option<Self> {
        let specified = |state: &Self| format!("{state:?}").to_ascii_uppercase() == text;
        match text {
            "MANAGED" => Some(Self::Manageable),
            text => Self::parse(text).or_else(|| Self::ALL.into_iter().find(specified)),
        }
    }

    /// Whether a node leaves this state only on request.
    pub fn is_stable(self) -> bool {
        self.target().is_none()
    }

    /// Whether a node gets a workload in it.
    pub fn is_deploying(self) -> bool {
        matches!(self, Self::Deploying | Self::DeployWait | Self::DeployHold | Self::Adopting)
    }

    /// What bounds the time that the node may spend in it before the controller acts; each budget is a
    /// setting in seconds.
    pub fn budget(self) -> Budget {
        let (_, (_, budget, _)) = STATES[self as usize];
        budget
    }

    /// `target_provision_state` that entering the state sets; `None` in stable states.
    pub fn target(self) -> Option<Self> {
        let (_, (_, _, target)) = STATES[self as usize];
        target
    }
}

impl From<ProvisionState> for &'static str {
    fn from(state: ProvisionState) -> Self {
        state.as_str()
    }
}

impl TryFrom<String> for ProvisionState {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("there is no provision state {text:?}"))
    }
}

/// What bounds the time a node may spend in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// Nothing: a user decides when it ends.
    User,
    /// `verify_timeout_s`: the BMC has to answer.
    Verify,
    /// `power_timeout_s` and `max_attempts` for each action, the step's own deadline for an out-of-band step.
    Bmc,
    /// `boot_timeout_s` until the agent is heard; then the running step's deadline and stall limit, and
    /// `agent_silence_s`.
    Ramdisk,
}

/// What moves a node from one state to another: verbs of users and events of the conductor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// `manage` (verb).
    Manage,
    /// `adopt` (verb).
    Adopt,
    /// `clean` (verb).
    Clean,
    /// `inspect` (verb).
    Inspect,
    /// `provide` (verb).
    Provide,
    /// `deploy` (verb).
    Deploy,
    /// `delete` (verb).
    Delete,
    /// `rebuild` (event).
    Rebuild,
    /// `rescue` (verb).
    Rescue,
    /// `service` (verb).
    Service,
    /// `unrescue` (verb).
    Unrescue,
    /// `done` (event).
    Done,
    /// `fail` (event).
    Fail,
    /// `hold` (event).
    Hold,
    /// `wait` (event).
    Wait,
    /// `abort` (verb).
    Abort,
    /// `resume` (event).
    Resume,
    /// `unhold` (verb).
    Unhold,
    /// An administrator's word that a node is fit without having been cleaned (verb, Anneal's own).
    Override,
}

/// Every verb with the name of its event in Ironic's state machine.
const VERBS: [(Verb, &str); 19] = [
    (Verb::Manage, "manage"),
    (Verb::Adopt, "adopt"),
    (Verb::Clean, "clean"),
    (Verb::Inspect, "inspect"),
    (Verb::Provide, "provide"),
    (Verb::Deploy, "deploy"),
    (Verb::Delete, "delete"),
    (Verb::Rebuild, "rebuild"),
    (Verb::Rescue, "rescue"),
    (Verb::Service, "service"),
    (Verb::Unrescue, "unrescue"),
    (Verb::Done, "done"),
    (Verb::Fail, "fail"),
    (Verb::Hold, "hold"),
    (Verb::Wait, "wait"),
    (Verb::Abort, "abort"),
    (Verb::Resume, "resume"),
    (Verb::Unhold, "unhold"),
    (Verb::Override, "available"),
];

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 19] = table::keys(VERBS);

    /// Name of the event in Ironic's state machine.
    pub fn as_str(self) -> &'static str {
        VERBS[self as usize].1
    }

    /// The `target` of `PUT …/states/provision` that asks for it, in Ironic's word. An event that no request asks for has its name.
    pub fn target(self) -> &'static str {
        match self {
            Self::Deploy => "active",
            Self::Delete => "deleted",
            verb => verb.as_str(),
        }
    }

    /// The verb for a `target` string of `PUT …/states/provision`: Ironic's word, or the name of the wanted state as the
    /// specifications write it.
    pub fn parse_target(text: &str) -> Option<Self> {
        Some(match text {
            "MANAGED" | "MANAGEABLE" => Self::Manage,
            // specs/cleaning-states.txt: "put the node's target_provision_state back to CLEANED to retry".
            "CLEANED" | "cleaned" => Self::Provide,
            "AVAILABLE" => Self::Override,
            "ACTIVE" => Self::Deploy,
            "RESCUE" => Self::Rescue,
            "DELETED" => Self::Delete,
            "abort" => Self::Abort,
            "active" | "deploy" => Self::Deploy,
            "adopt" => Self::Adopt,
            "available" => Self::Override,
            "clean" => Self::Clean,
            "deleted" | "undeploy" => Self::Delete,
            "inspect" => Self::Inspect,
            "manage" | "manageable" => Self::Manage,
            "provide" => Self::Provide,
            "rebuild" => Self::Rebuild,
            "rescue" => Self::Rescue,
            "service" => Self::Service,
            "unhold" => Self::Unhold,
            "unrescue" => Self::Unrescue,
            _ => return None,
        })
    }
}

/// The verb or event is not for this state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("event {:?} is not allowed in provision state {:?}", verb.as_str(), state.as_str())]
pub struct Refused {
    /// The verb.
    pub verb: Verb,
    /// The state it came in.
    pub state: ProvisionState,
}

/// Where `verb` leads from `state`.
#[expect(clippy::too_many_lines, reason = "a table reads best in one piece")]
pub fn transition(state: ProvisionState, verb: Verb) -> Result<ProvisionState, Refused> {
    use ProvisionState::*;
    use Verb as V;
    Ok(match (state, verb) {
        (Enroll, V::Manage) => Verifying,
        (Manageable, V::Adopt) => Adopting,
        (Manageable, V::Clean | V::Provide) => Cleaning,
        (Manageable, V::Inspect) => Inspecting,
        (Available, V::Deploy) => Deploying,
        (Available, V::Manage) => Manageable,
        (Active, V::Delete) => Deleting,
        (Active, V::Rebuild) => Deploying,
        (Active, V::Rescue) => Rescuing,
        (Active, V::Service) => Servicing,
        (Error, V::Delete) => Deleting,
        (Error, V::Rebuild) => Deploying,
        (Rescue, V::Delete) => Deleting,
        (Rescue, V::Rescue) => Rescuing,
        (Rescue, V::Unrescue) => Unrescuing,
        (Verifying, V::Done) => Manageable,
        (Verifying, V::Fail) => Enroll,
        (Deploying, V::Done) => Active,
        (Deploying, V::Fail) => DeployFail,
        (Deploying, V::Hold) => DeployHold,
        (Deploying, V::Wait) => DeployWait,
        (DeployWait, V::Abort | V::Fail) => DeployFail,
        (DeployWait, V::Delete) => Deleting,
        (DeployWait, V::Hold) => DeployHold,
        (DeployWait, V::Resume) => Deploying,
        (DeployFail, V::Delete) => Deleting,
        (DeployFail, V::Deploy | V::Rebuild) => Deploying,
        (DeployHold, V::Abort) => DeployFail,
        (DeployHold, V::Unhold) => DeployWait,
        (Cleaning, V::Done) => Available,
        (Cleaning, V::Fail) => CleanFail,
        (Cleaning, V::Hold) => CleanHold,
        (Cleaning, V::Manage) => Manageable,
        (Cleaning, V::Wait) => CleanWait,
        (CleanWait, V::Abort | V::Fail) => CleanFail,
        (CleanWait, V::Hold) => CleanHold,
        (CleanWait, V::Resume) => Cleaning,
        (CleanFail, V::Manage) => Manageable,
        (CleanHold, V::Abort) => CleanFail,
        (CleanHold, V::Unhold) => CleanWait,
        (Deleting, V::Clean) => Cleaning,
        (Deleting, V::Fail) => Error,
        (Inspecting, V::Done) => Manageable,
        (Inspecting, V::Fail) => InspectFail,
        (Inspecting, V::Wait) => InspectWait,
        (InspectFail, V::Inspect) => Inspecting,
        (InspectFail, V::Manage) => Manageable,
        (InspectWait, V::Abort | V::Fail) => InspectFail,
        (InspectWait, V::Done) => Manageable,
        (InspectWait, V::Resume) => Inspecting,
        (Adopting, V::Done) => Active,
        (Adopting, V::Fail) => AdoptFail,
        (AdoptFail, V::Adopt) => Adopting,
        (AdoptFail, V::Manage) => Manageable,
        (Rescuing, V::Done) => Rescue,
        (Rescuing, V::Fail) => RescueFail,
        (Rescuing, V::Wait) => RescueWait,
        (RescueWait, V::Abort | V::Fail) => RescueFail,
        (RescueWait, V::Delete) => Deleting,
        (RescueWait, V::Resume) => Rescuing,
        (RescueFail, V::Delete) => Deleting,
        (RescueFail, V::Rescue) => Rescuing,
        (RescueFail, V::Unrescue) => Unrescuing,
        (Unrescuing, V::Done) => Active,
        (Unrescuing, V::Fail) => UnrescueFail,
        (UnrescueFail, V::Delete) => Deleting,
        (UnrescueFail, V::Rescue) => Rescuing,
        (UnrescueFail, V::Unrescue) => Unrescuing,
        (Servicing, V::Done) => Active,
        (Servicing, V::Fail) => ServiceFail,
        (Servicing, V::Hold) => ServiceHold,
        (Servicing, V::Wait) => ServiceWait,
        (ServiceWait, V::Abort | V::Fail) => ServiceFail,
        (ServiceWait, V::Delete) => Deleting,
        (ServiceWait, V::Hold) => ServiceHold,
        (ServiceWait, V::Resume) => Servicing,
        (ServiceFail, V::Abort) => Active,
        (ServiceFail, V::Delete) => Deleting,
        (ServiceFail, V::Hold) => ServiceHold,
        (ServiceFail, V::Rescue) => Rescuing,
        (ServiceFail, V::Service) => Servicing,
        (ServiceFail, V::Wait) => ServiceWait,
        (ServiceHold, V::Abort | V::Fail) => ServiceFail,
        (ServiceHold, V::Service) => Servicing,
        (ServiceHold, V::Unhold) => ServiceWait,
        // specs/cleaning-states.txt: "Nodes in CLEANFAIL may be put into CLEANING"; Ironic wants `manage` first.
        (CleanFail, V::Clean | V::Provide) => Cleaning,
        // The same sentence: "... or AVAILABLE state, as determined by the operator".
        (CleanFail, V::Override) => Available,
        (state, verb) => return Err(Refused { verb, state }),
    })
}
