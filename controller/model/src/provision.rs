//! The provision state machine: the only definition of the allowed transitions.
//!
//! The table is Ironic 39's (30 states), plus the retries from CLEANFAIL that
//! `specs/cleaning-states.txt` asks for. `tests/provision_table.rs` holds it equal to Ironic's.

use serde::{Deserialize, Serialize};

/// The provision state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProvisionState {
    /// `enroll`, stable.
    #[serde(rename = "enroll")]
    Enroll,
    /// `manageable`, stable.
    #[serde(rename = "manageable")]
    Manageable,
    /// `available`, stable.
    #[serde(rename = "available")]
    Available,
    /// `active`, stable.
    #[serde(rename = "active")]
    Active,
    /// `error`, stable.
    #[serde(rename = "error")]
    Error,
    /// `rescue`, stable.
    #[serde(rename = "rescue")]
    Rescue,
    /// `verifying`.
    #[serde(rename = "verifying")]
    Verifying,
    /// `deploying`.
    #[serde(rename = "deploying")]
    Deploying,
    /// `wait call-back`.
    #[serde(rename = "wait call-back")]
    DeployWait,
    /// `deploy failed`.
    #[serde(rename = "deploy failed")]
    DeployFail,
    /// `deploy hold`.
    #[serde(rename = "deploy hold")]
    DeployHold,
    /// `cleaning`.
    #[serde(rename = "cleaning")]
    Cleaning,
    /// `clean wait`.
    #[serde(rename = "clean wait")]
    CleanWait,
    /// `clean failed`.
    #[serde(rename = "clean failed")]
    CleanFail,
    /// `clean hold`.
    #[serde(rename = "clean hold")]
    CleanHold,
    /// `deleting`.
    #[serde(rename = "deleting")]
    Deleting,
    /// `inspecting`.
    #[serde(rename = "inspecting")]
    Inspecting,
    /// `inspect failed`.
    #[serde(rename = "inspect failed")]
    InspectFail,
    /// `inspect wait`.
    #[serde(rename = "inspect wait")]
    InspectWait,
    /// `adopting`.
    #[serde(rename = "adopting")]
    Adopting,
    /// `adopt failed`.
    #[serde(rename = "adopt failed")]
    AdoptFail,
    /// `rescuing`.
    #[serde(rename = "rescuing")]
    Rescuing,
    /// `rescue wait`.
    #[serde(rename = "rescue wait")]
    RescueWait,
    /// `rescue failed`.
    #[serde(rename = "rescue failed")]
    RescueFail,
    /// `unrescuing`.
    #[serde(rename = "unrescuing")]
    Unrescuing,
    /// `unrescue failed`.
    #[serde(rename = "unrescue failed")]
    UnrescueFail,
    /// `servicing`.
    #[serde(rename = "servicing")]
    Servicing,
    /// `service wait`.
    #[serde(rename = "service wait")]
    ServiceWait,
    /// `service failed`.
    #[serde(rename = "service failed")]
    ServiceFail,
    /// `service hold`.
    #[serde(rename = "service hold")]
    ServiceHold,
}

impl ProvisionState {
    /// Every state.
    pub const ALL: [Self; 30] = [
        Self::Enroll,
        Self::Manageable,
        Self::Available,
        Self::Active,
        Self::Error,
        Self::Rescue,
        Self::Verifying,
        Self::Deploying,
        Self::DeployWait,
        Self::DeployFail,
        Self::DeployHold,
        Self::Cleaning,
        Self::CleanWait,
        Self::CleanFail,
        Self::CleanHold,
        Self::Deleting,
        Self::Inspecting,
        Self::InspectFail,
        Self::InspectWait,
        Self::Adopting,
        Self::AdoptFail,
        Self::Rescuing,
        Self::RescueWait,
        Self::RescueFail,
        Self::Unrescuing,
        Self::UnrescueFail,
        Self::Servicing,
        Self::ServiceWait,
        Self::ServiceFail,
        Self::ServiceHold,
    ];

    /// The wire string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enroll => "enroll",
            Self::Manageable => "manageable",
            Self::Available => "available",
            Self::Active => "active",
            Self::Error => "error",
            Self::Rescue => "rescue",
            Self::Verifying => "verifying",
            Self::Deploying => "deploying",
            Self::DeployWait => "wait call-back",
            Self::DeployFail => "deploy failed",
            Self::DeployHold => "deploy hold",
            Self::Cleaning => "cleaning",
            Self::CleanWait => "clean wait",
            Self::CleanFail => "clean failed",
            Self::CleanHold => "clean hold",
            Self::Deleting => "deleting",
            Self::Inspecting => "inspecting",
            Self::InspectFail => "inspect failed",
            Self::InspectWait => "inspect wait",
            Self::Adopting => "adopting",
            Self::AdoptFail => "adopt failed",
            Self::Rescuing => "rescuing",
            Self::RescueWait => "rescue wait",
            Self::RescueFail => "rescue failed",
            Self::Unrescuing => "unrescuing",
            Self::UnrescueFail => "unrescue failed",
            Self::Servicing => "servicing",
            Self::ServiceWait => "service wait",
            Self::ServiceFail => "service failed",
            Self::ServiceHold => "service hold",
        }
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
        matches!(
            self,
            Self::Enroll | Self::Manageable | Self::Available | Self::Active | Self::Error | Self::Rescue
        )
    }

    /// What bounds the time that the node may spend in it before the controller acts; each budget is a
    /// setting in seconds.
    pub fn budget(self) -> Budget {
        match self {
            Self::Verifying | Self::Adopting => Budget::Verify,
            Self::Deploying
            | Self::Cleaning
            | Self::Inspecting
            | Self::Rescuing
            | Self::Unrescuing
            | Self::Servicing
            | Self::Deleting => Budget::Bmc,
            Self::DeployWait | Self::CleanWait | Self::InspectWait | Self::RescueWait | Self::ServiceWait => {
                Budget::Ramdisk
            }
            Self::Enroll
            | Self::Manageable
            | Self::Available
            | Self::Active
            | Self::Error
            | Self::Rescue
            | Self::DeployFail
            | Self::DeployHold
            | Self::CleanFail
            | Self::CleanHold
            | Self::InspectFail
            | Self::AdoptFail
            | Self::RescueFail
            | Self::UnrescueFail
            | Self::ServiceFail
            | Self::ServiceHold => Budget::User,
        }
    }

    /// `target_provision_state` that entering the state sets; `None` in stable states.
    pub fn target(self) -> Option<Self> {
        Some(match self {
            Self::Verifying | Self::Inspecting | Self::InspectFail | Self::InspectWait => Self::Manageable,
            Self::Deploying
            | Self::DeployWait
            | Self::DeployFail
            | Self::DeployHold
            | Self::Adopting
            | Self::AdoptFail
            | Self::Unrescuing
            | Self::UnrescueFail
            | Self::Servicing
            | Self::ServiceWait
            | Self::ServiceFail
            | Self::ServiceHold => Self::Active,
            Self::Cleaning | Self::CleanWait | Self::CleanFail | Self::CleanHold | Self::Deleting => {
                Self::Available
            }
            Self::Rescuing | Self::RescueWait | Self::RescueFail => Self::Rescue,
            Self::Enroll | Self::Manageable | Self::Available | Self::Active | Self::Error | Self::Rescue => {
                return None;
            }
        })
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

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 19] = [
        Self::Manage,
        Self::Adopt,
        Self::Clean,
        Self::Inspect,
        Self::Provide,
        Self::Deploy,
        Self::Delete,
        Self::Rebuild,
        Self::Rescue,
        Self::Service,
        Self::Unrescue,
        Self::Done,
        Self::Fail,
        Self::Hold,
        Self::Wait,
        Self::Abort,
        Self::Resume,
        Self::Unhold,
        Self::Override,
    ];

    /// Name of the event in Ironic's state machine.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Manage => "manage",
            Self::Adopt => "adopt",
            Self::Clean => "clean",
            Self::Inspect => "inspect",
            Self::Provide => "provide",
            Self::Deploy => "deploy",
            Self::Delete => "delete",
            Self::Rebuild => "rebuild",
            Self::Rescue => "rescue",
            Self::Service => "service",
            Self::Unrescue => "unrescue",
            Self::Done => "done",
            Self::Fail => "fail",
            Self::Hold => "hold",
            Self::Wait => "wait",
            Self::Abort => "abort",
            Self::Resume => "resume",
            Self::Unhold => "unhold",
            Self::Override => "available",
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
