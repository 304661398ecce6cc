//! The story of a node: one event for every transition, with its cause, stored with it.

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
