//! The kinds of runs, and everything that depends on the kind.

use crate::provision::Verb;
use crate::step::StepKind;
use crate::table;
use serde::{Deserialize, Serialize};

/// Kind of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// Before AVAILABLE: the clean steps with a priority above 0.
    AutomatedClean,
    /// From MANAGEABLE back to MANAGEABLE: the clean steps asked for.
    ManualClean,
    /// From AVAILABLE to ACTIVE.
    Deploy,
    /// From ACTIVE to ACTIVE, deployed again without cleaning.
    Rebuild,
    /// From ACTIVE to ACTIVE: the service steps asked for.
    Service,
    /// From MANAGEABLE to MANAGEABLE: the inventory.
    Inspect,
    /// From ACTIVE to RESCUE.
    Rescue,
    /// From RESCUE to ACTIVE.
    Unrescue,
    /// Removes what a deployment added, before cleaning.
    Delete,
}

/// What is left running when a run has succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The node is switched off, if the run booted it.
    Off,
    /// The node is switched off in any case.
    AlwaysOff,
    /// The node is started from its disk, if the run booted it.
    Workload,
    /// The node is started from its disk in any case.
    AlwaysWorkload,
    /// The ramdisk goes on.
    Ramdisk,
}

/// Every kind with its name on the wire.
const KINDS: [(RunKind, &str); 9] = [
    (RunKind::AutomatedClean, "automated_clean"),
    (RunKind::ManualClean, "manual_clean"),
    (RunKind::Deploy, "deploy"),
    (RunKind::Rebuild, "rebuild"),
    (RunKind::Service, "service"),
    (RunKind::Inspect, "inspect"),
    (RunKind::Rescue, "rescue"),
    (RunKind::Unrescue, "unrescue"),
    (RunKind::Delete, "delete"),
];

impl RunKind {
    /// Every kind.
    pub const ALL: [Self; 9] = table::keys(KINDS);

    /// Name on the wire.
    pub fn as_str(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// Its steps, if it has any.
    pub fn steps(self) -> Option<StepKind> {
        match self {
            Self::AutomatedClean | Self::ManualClean => Some(StepKind::Clean),
            Self::Deploy | Self::Rebuild => Some(StepKind::Deploy),
            Self::Service => Some(StepKind::Service),
            Self::Inspect | Self::Rescue | Self::Unrescue | Self::Delete => None,
        }
    }

    /// Ironic's word for it in a sentence: "By request, the clean operation was aborted".
    pub fn operation(self) -> &'static str {
        match self {
            Self::AutomatedClean | Self::ManualClean => "clean",
            Self::Deploy | Self::Rebuild => "deploy",
            Self::Service => "service",
            Self::Inspect => "inspection",
            Self::Rescue => "rescue",
            Self::Unrescue => "unrescue",
            Self::Delete => "tear-down",
        }
    }

    /// The activity, for sentences: "Timeout reached while cleaning the node".
    pub fn doing(self) -> &'static str {
        match self {
            Self::AutomatedClean | Self::ManualClean => "cleaning",
            Self::Deploy | Self::Rebuild => "deploying",
            Self::Service => "servicing",
            Self::Inspect => "inspecting",
            Self::Rescue => "rescuing",
            Self::Unrescue => "unrescuing",
            Self::Delete => "tearing down",
        }
    }

    /// The momentary state that its success passes (specs/state-machine.txt).
    pub fn momentary(self) -> &'static str {
        match self {
            Self::AutomatedClean | Self::ManualClean => "CLEANED",
            Self::Deploy | Self::Rebuild => "DEPLOYED",
            Self::Service => "SERVICED",
            Self::Inspect => "INSPECTED",
            Self::Rescue => "RESCUED",
            Self::Unrescue => "UNRESCUED",
            Self::Delete => "DELETED",
        }
    }

    /// The event of the state machine for its success.
    pub fn success(self) -> Verb {
        match self {
            Self::ManualClean => Verb::Manage,
            Self::Delete => Verb::Clean,
            _ => Verb::Done,
        }
    }

    /// The fault that its failure sets together with maintenance; `None`: the node stays in service.
    pub fn fault(self) -> Option<&'static str> {
        match self {
            Self::AutomatedClean | Self::ManualClean => Some("clean failure"),
            Self::Service => Some("service failure"),
            _ => None,
        }
    }

    /// What is left running.
    pub fn after(self) -> After {
        match self {
            Self::AutomatedClean | Self::ManualClean | Self::Inspect => After::Off,
            Self::Deploy | Self::Rebuild | Self::Service => After::Workload,
            Self::Rescue => After::Ramdisk,
            Self::Unrescue => After::AlwaysWorkload,
            Self::Delete => After::AlwaysOff,
        }
    }

    /// Whether its plan is made from what is known, and not from what a user asked for.
    pub fn is_planned_by_us(self) -> bool {
        matches!(self, Self::AutomatedClean | Self::Deploy | Self::Rebuild)
    }
}
