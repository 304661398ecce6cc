//! The story of a node: one event for every transition, with its cause, stored with it.

use crate::node::Node;
use crate::provision::ProvisionState;
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
    /// The provision state that the node was in when it happened; noted by the store. `None` in events of
    /// before 0.2.
    #[serde(default)]
    pub state: Option<ProvisionState>,
    /// Where the node was going then; noted by the store.
    #[serde(default)]
    pub target_provision_state: Option<ProvisionState>,
    /// Seconds for which the node had been in that state; noted by the store.
    #[serde(default)]
    pub duration_s: Option<u64>,
}

impl Event {
    /// An event of `at`; what only the node knows is noted when it is stored.
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
        }
    }

    /// Note how the node stood when it happened.
    pub fn note(&mut self, stood: &StateAtEvent) {
        self.state = Some(stood.provision_state);
        self.target_provision_state = stood.target_provision_state;
        self.duration_s = stood.provision_updated_at.map(|since| self.at.since(since).as_secs());
    }
}

/// How a node stood: the part of it that its events note. Can be read from its document alone.
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
    /// How `node` stands.
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
    /// The BMC told something else than before of the hardware.
    Monitoring,
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
