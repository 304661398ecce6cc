//! `POST /v1/heartbeat/<uuid>`: the agent is alive, and where to reach it.

use crate::progress::Progress;
use serde::{Deserialize, Serialize};

/// Body of a heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// URL of the agent's API, `https://` when it serves TLS.
    pub callback_url: String,
    /// The token from the lookup (1.62).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_token: Option<String>,
    /// Version of the agent (1.36).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// PEM of the agent's own certificate, to be pinned (1.68).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_verify_ca: Option<String>,
    /// Anneal's part; sent only after [`crate::lookup::Offer`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anneal: Option<AgentState>,
}

/// What our agent adds to a heartbeat, so that a controller never has to guess whether the node rebooted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    /// The extension the agent speaks (at most the offered one).
    pub extension: u32,
    /// `/proc/sys/kernel/random/boot_id` of the ramdisk: changes with every boot of the node.
    pub boot_id: String,
    /// Random id of this agent process: changes when the process is restarted within one boot.
    pub process_id: String,
    /// The public key that this process signs the evidence of its erases with, `ed25519:` and 64 hexadecimal digits;
    /// made when it starts and kept nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_key: Option<String>,
    /// The command now running, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Running>,
    /// Ids of commands that have ended since this process started, newest last, at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<String>,
}

/// A running command and how far it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Running {
    /// The command's id.
    pub id: String,
    /// Its name without extension, as in [`crate::command::CommandStatus::command_name`].
    pub command_name: String,
    /// Live progress, when the command reports any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}
