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

/// Every kind with its words: the name on the wire; Ironic's word for it in a sentence ("By request, the clean
/// operation was aborted"); the activity ("Timeout reached while cleaning the node"); the momentary state that its
/// success passes (specs/state-machine.txt).
const KINDS: [(RunKind, [&str; 4]); 9] = [
    (RunKind::AutomatedClean, ["automated_clean", "clean", "cleaning", "CLEANED"]),
    (RunKind::ManualClean, ["manual_clean", "clean", "cleaning", "CLEANED"]),
    (RunKind::Deploy, ["deploy", "deploy", "deploying", "DEPLOYED"]),
    (RunKind::Rebuild, ["rebuild", "deploy", "deploying", "DEPLOYED"]),
    (RunKind::Service, ["service", "service", "servicing", "SERVICED"]),
    (RunKind::Inspect, ["inspect", "inspection", "inspecting", "INSPECTED"]),
    (RunKind::Rescue, ["rescue", "rescue", "rescuing", "RESCUED"]),
    (RunKind::Unrescue, ["unrescue", "unrescue", "unrescuing", "UNRESCUED"]),
    (RunKind::Delete, ["delete", "tear-down", "tearing down", "DELETED"]),
];

impl RunKind {
    /// Every kind.
    pub const ALL: [Self; 9] = table::keys(KINDS);

    fn words(self) -> [&'static str; 4] {
        let (_, words) = KINDS[self as usize];
        words
    }

    /// Name on the wire.
    pub fn as_str(self) -> &'static str {
        self.words()[0]
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
        self.words()[1]
    }

    /// The activity, for sentences: "Timeout reached while cleaning the node".
    pub fn doing(self) -> &'static str {
        self.words()[2]
    }

    /// The momentary state that its success passes (specs/state-machine.txt).
    pub fn momentary(self) -> &'static str {
        self.words()[3]
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
