//! What the controller knows about the agent of a node. Stored apart from the node's row, so that a heartbeat never makes a
//! versioned write of the node fail.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Contact with the agent of one boot of a node. Forgotten when the controller powers the node off or resets it.
#[derive(Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Contact {
    /// Token given to the agent at its lookup. A secret.
    pub token: Option<String>,
    /// When it was given.
    pub token_at: Option<Timestamp>,
    /// Boot id the agent named when it looked itself up (Anneal's agents), if any.
    #[serde(default)]
    pub lookup_boot_id: Option<String>,
    /// URL of the agent's API, from its first heartbeat on.
    pub callback_url: Option<String>,
    /// PEM of the agent's certificate, pinned from its first heartbeat on.
    pub verify_ca: Option<String>,
    /// Version of the agent.
    pub agent_version: Option<String>,
    /// When it was last heard.
    pub last_heartbeat_at: Option<Timestamp>,
    /// Anneal's part of the last heartbeat; `None` from ironic-python-agent.
    #[serde(default)]
    pub state: Option<AgentState>,
    /// When the progress in the heartbeats, or the command it belongs to, last changed; `None` from ironic-python-agent. A
    /// running step whose progress does not change is stalled.
    #[serde(default)]
    pub progress_at: Option<Timestamp>,
    /// Another agent asked for a token while one was given out: a rebooted node, or an impostor.
    #[serde(default)]
    pub rival: Option<Rival>,
}

impl std::fmt::Debug for Contact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contact")
            .field("token", &self.token.as_ref().map(|_| "******"))
            .field("callback_url", &self.callback_url)
            .field("last_heartbeat_at", &self.last_heartbeat_at)
            .field("state", &self.state)
            .field("rival", &self.rival)
            .finish_non_exhaustive()
    }
}

/// What an Anneal agent reports about itself in each heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    /// Boot id of the ramdisk.
    pub boot_id: String,
    /// Id of the agent's process.
    pub process_id: String,
    /// The public key with which this process signs the evidence of its erases.
    #[serde(default)]
    pub evidence_key: Option<String>,
    /// Id of the running command.
    #[serde(default)]
    pub running: Option<String>,
    /// Ids of the commands that have ended.
    #[serde(default)]
    pub ended: Vec<String>,
    /// Progress of the running command, as the agent sent it.
    #[serde(default)]
    pub progress: Option<Value>,
}

/// A lookup that got no token because one was given out already.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rival {
    /// When it asked last.
    pub at: Timestamp,
    /// Boot id it named, if it did.
    pub boot_id: Option<String>,
}
