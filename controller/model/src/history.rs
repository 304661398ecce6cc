//! The history of a node: an event for each change, with its cause, stored in the same write.

use crate::node::Node;
use crate::provision::ProvisionState;
use crate::request_sender::RequestSender;
use crate::run::{Logs, Run};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its id.
    pub uuid: Uuid,
    /// When.
    pub at: Timestamp,
    /// What kind.
    pub kind: EventKind,
    /// `ERROR` or `INFO`, as in Ironic's node history.
    pub severity: Severity,
    /// One sentence that names cause and effect.
    pub text: String,
    /// The provision state of the node before the write; set by the store.
    #[serde(default)]
    pub state: Option<ProvisionState>,
    /// Its target provision state then; set by the store.
    #[serde(default)]
    pub target_provision_state: Option<ProvisionState>,
    /// Seconds for which the node had been in that state; set by the store.
    #[serde(default)]
    pub duration_s: Option<u64>,
    /// The command of a step that it is about.
    #[serde(default)]
    pub command_id: Option<String>,
    /// The API request that caused it: the request itself, or the one that started the run. `None`: no request did.
    #[serde(default)]
    pub request_id: Option<String>,
    /// The sender of that request.
    #[serde(default)]
    pub sender: Option<RequestSender>,
}

impl Event {
    /// An event of `at`. The store adds the state of the node.
    pub fn new(kind: EventKind, severity: Severity, text: String, at: Timestamp) -> Self {
        Self {
            uuid: Uuid::new_v4(),
            at,
            kind,
            severity,
            text,
            state: None,
            target_provision_state: None,
            duration_s: None,
            command_id: None,
            request_id: None,
            sender: None,
        }
    }

    /// Note the command and the request that it belongs to, given the node's run before and after the change that the
    /// event reports. A step that ended is one of the run before, a step that begins one of the run after.
    pub fn note_run(&mut self, before: Option<&Run>, after: Option<&Run>) {
        let of_both = || before.into_iter().chain(after);
        self.command_id = of_both().find_map(Run::command_id).map(str::to_owned);
        let at_work = |run: &&Run| run.is_active() || run.logs == Some(Logs::Wanted);
        let at_work = of_both().find(at_work);
        self.request_id = at_work.and_then(|run| run.request_id.clone());
        self.sender = at_work.and_then(|run| run.sender.clone());
    }

    /// Note the state of the node before the write.
    pub fn note(&mut self, stood: &StateAtEvent) {
        self.state = Some(stood.provision_state);
        self.target_provision_state = stood.target_provision_state;
        self.duration_s = stood.provision_updated_at.map(|since| self.at.since(since).as_secs());
    }
}

/// The part of a node that its events note. It can be read from the stored document without the rest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct StateAtEvent {
    /// [`Node::provision_state`].
    pub provision_state: ProvisionState,
    /// [`Node::target_provision_state`].
    pub target_provision_state: Option<ProvisionState>,
    /// [`Node::provision_updated_at`].
    pub provision_updated_at: Option<Timestamp>,
}

impl StateAtEvent {
    /// The state of `node`.
    pub fn of(node: &Node) -> Self {
        Self {
            provision_state: node.provision_state,
            target_provision_state: node.target_provision_state,
            provision_updated_at: node.provision_updated_at,
        }
    }
}

/// Kind of an event (`event_type` on the wire).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The provision state changed.
    Transition,
    /// A momentary `-ED` state was passed.
    Momentary,
    /// A step began or ended.
    Step,
    /// Power was changed.
    Power,
    /// The agent came, went or was replaced.
    Agent,
    /// A user set or unset maintenance, retirement or protection.
    Flag,
    /// The BMC reports another health or power state than before.
    Monitoring,
    /// A user changed fields. Only in the log over all nodes.
    Change,
    /// A certificate was stored. Only in the log over all nodes.
    Record,
    /// The node was deleted. Only in the log over all nodes.
    Deleted,
}

impl EventKind {
    /// All.
    pub const ALL: [Self; 10] = [
        Self::Transition,
        Self::Momentary,
        Self::Step,
        Self::Power,
        Self::Agent,
        Self::Flag,
        Self::Monitoring,
        Self::Change,
        Self::Record,
        Self::Deleted,
    ];

    /// Whether the history of the node has events of this kind. Changes of fields are too many for it, and it goes with
    /// its node.
    pub fn is_history(self) -> bool {
        !matches!(self, Self::Change | Self::Record | Self::Deleted)
    }

    /// Its name, as it is stored and shown in Ironic's `event_type`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transition => "transition",
            Self::Momentary => "momentary",
            Self::Step => "step",
            Self::Power => "power",
            Self::Agent => "agent",
            Self::Flag => "flag",
            Self::Monitoring => "monitoring",
            Self::Change => "change",
            Self::Record => "record",
            Self::Deleted => "deleted",
        }
    }
}

/// Severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Severity {
    /// Information.
    Info,
    /// Something failed.
    Error,
}
