//! `/v1/commands`: what a controller asks an agent to do, and how it went.

use crate::progress::Progress;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Body of `POST /v1/commands/?wait=<bool>&agent_token=<token>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandRequest {
    /// `<extension>.<command>`, for example `clean.execute_clean_step`.
    pub name: String,
    /// Named parameters.
    pub params: Map<String, Value>,
    /// Id chosen by the controller. Anneal's: sent only to an agent whose heartbeat carried
    /// [`crate::heartbeat::AgentState`]; a repeated id is answered with the same command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anneal_command_id: Option<String>,
    /// Epoch of the lease under which the controller sends this. An agent that was sent a newer one refuses it: another
    /// controller, or a later pass, drives the node by now. Anneal's: sent only to an agent whose heartbeat carried
    /// [`crate::heartbeat::AgentState`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anneal_epoch: Option<u64>,
}

/// One command as the agent reports it, in answers to POST and GET.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandStatus {
    /// Id: the controller's if it gave one, else the agent's.
    pub id: String,
    /// Name without the extension: `execute_clean_step`.
    pub command_name: String,
    /// Where it stands.
    pub command_status: Status,
    /// The error of a failed command.
    pub command_error: Option<CommandError>,
    /// The result of an ended command.
    pub command_result: Option<Value>,
    /// Progress of a running one. Anneal's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// What a running one saved last for the case that it is interrupted: to be given back in the parameter
    /// [`ANNEAL`] of the command that runs the same step again. Anneal's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Value>,
}

/// Parameter of `execute_*_step` and of `install_bootloader` that carries what Anneal adds; sent only to an agent of Anneal's.
pub const ANNEAL: &str = "anneal";

/// Value of the parameter [`ANNEAL`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Addition {
    /// What the step saved before it was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Value>,
    /// UUID of the node, with a command that does not name it: its evidence does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// Longest checkpoint, in bytes of JSON.
pub const CHECKPOINT_MAX: usize = 64 << 10;

/// `GET /v1/commands/`: oldest first, for the life of the agent's process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandList {
    /// The commands.
    pub commands: Vec<CommandStatus>,
}

/// Status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Still at it.
    #[serde(rename = "RUNNING")]
    Running,
    /// Ended well.
    #[serde(rename = "SUCCEEDED")]
    Succeeded,
    /// Ended with [`CommandStatus::command_error`].
    #[serde(rename = "FAILED")]
    Failed,
    /// The hardware managers are no longer those of `clean_version`; nothing was run.
    #[serde(rename = "CLEAN_VERSION_MISMATCH", alias = "VERSION_MISMATCH")]
    VersionMismatch,
}

/// Error of a failed command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandError {
    /// Kind, for example `CleaningError`.
    #[serde(rename = "type")]
    pub kind: String,
    /// HTTP-like code.
    pub code: u16,
    /// What failed.
    pub message: String,
    /// Why.
    pub details: String,
}
