//! What the controller knows about the agent on a node. It is stored apart from the node's row, so that a heartbeat never
//! makes a versioned write of the node fail.

use crate::boot::Boot;
use crate::boot_proof::BootProof;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::IpAddr;

/// Contact with the agent of one boot of a node. Deleted when the controller powers the node off or resets it.
#[derive(Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Contact {
    /// The boot that the agent runs in, or is awaited in; `None` where the controller ordered none.
    #[serde(default)]
    pub boot: Option<Boot>,
    /// What the node's TPM proved of this boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Box<BootProof>>,
    /// Token returned to the agent's lookup. A secret.
    pub token: Option<String>,
    /// When the token was returned.
    pub token_at: Option<Timestamp>,
    /// The address that the token was returned to.
    #[serde(default)]
    pub token_to: Option<IpAddr>,
    /// Boot id in the agent's lookup; only Anneal's agents send one.
    #[serde(default)]
    pub lookup_boot_id: Option<String>,
    /// URL of the agent's API, from its first heartbeat on.
    pub callback_url: Option<String>,
    /// PEM of the agent's certificate, pinned from its first heartbeat on.
    pub verify_ca: Option<String>,
    /// Version of the agent.
    pub agent_version: Option<String>,
    /// When the last heartbeat arrived.
    pub last_heartbeat_at: Option<Timestamp>,
    /// The kind of agent, and what it reported of itself; `None` before its first heartbeat.
    #[serde(default, rename = "state")]
    pub agent: Option<AgentKind>,
    /// When a heartbeat last reported another running command or other progress than the heartbeat before it; `None`
    /// from ironic-python-agent. A running step whose progress does not change is stalled.
    #[serde(default)]
    pub progress_at: Option<Timestamp>,
    /// Another agent asked for a token after this one had got it: the node rebooted, or an impostor asks.
    #[serde(default)]
    pub rival: Option<SecondAgent>,
    /// The agent with the token was not accepted, because it does not sign.
    #[serde(default)]
    pub unsigned: Option<UnsignedAgent>,
}

/// An agent that does not sign, on a node that booted one that does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsignedAgent {
    /// Where its heartbeat came from, where that is known.
    pub address: Option<IpAddr>,
}

impl std::fmt::Debug for Contact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contact")
            .field("boot", &self.boot)
            .field("proof", &self.proof)
            .field("token", &self.token.as_ref().map(|_| "******"))
            .field("callback_url", &self.callback_url)
            .field("last_heartbeat_at", &self.last_heartbeat_at)
            .field("agent", &self.agent)
            .field("rival", &self.rival)
            .field("unsigned", &self.unsigned)
            .finish_non_exhaustive()
    }
}

impl Contact {
    /// The address that speaks for the node: that which got the token, before that the one that fetched the boot script.
    pub fn claimed_from(&self) -> Option<IpAddr> {
        self.token_to.or_else(|| self.boot.as_ref()?.fetched_from)
    }

    /// What an Anneal agent reported of itself; `None` from any other agent.
    pub fn anneal(&self) -> Option<&AgentState> {
        self.agent.as_ref().and_then(AgentKind::anneal)
    }
}

/// The kind of an agent, known from its heartbeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredKind", into = "StoredKind")]
pub enum AgentKind {
    /// Anneal's agent, and what its last heartbeat reported.
    Anneal(AgentState),
    /// ironic-python-agent. Its heartbeats report nothing but where it listens.
    Ipa,
}

impl AgentKind {
    /// What an Anneal agent reported of itself; `None` of any other agent.
    pub fn anneal(&self) -> Option<&AgentState> {
        match self {
            Self::Anneal(state) => Some(state),
            Self::Ipa => None,
        }
    }
}

impl From<Option<AgentState>> for AgentKind {
    /// The kind by Anneal's part of a heartbeat.
    fn from(state: Option<AgentState>) -> Self {
        state.map_or(Self::Ipa, Self::Anneal)
    }
}

/// The stored form: the state of an Anneal agent, or the name of another agent.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredKind {
    Anneal(AgentState),
    Other(String),
}

impl From<StoredKind> for AgentKind {
    fn from(stored: StoredKind) -> Self {
        match stored {
            StoredKind::Anneal(state) => Self::Anneal(state),
            StoredKind::Other(_) => Self::Ipa,
        }
    }
}

impl From<AgentKind> for StoredKind {
    fn from(kind: AgentKind) -> Self {
        match kind {
            AgentKind::Anneal(state) => Self::Anneal(state),
            AgentKind::Ipa => Self::Other("ironic-python-agent".to_owned()),
        }
    }
}

/// What an Anneal agent reports of itself in each heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    /// Boot id of the ramdisk.
    pub boot_id: String,
    /// Id of the agent's process.
    pub process_id: String,
    /// The public key with which this process signs the evidence of its erases, if it signs it.
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

/// A lookup that got no token because another agent has it, or a fetch of the boot script that got no nonce.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SecondAgent {
    /// When it last asked.
    pub at: Timestamp,
    /// Boot id in its lookup, if it sent one.
    pub boot_id: Option<String>,
    /// It has asked more than once since the last heartbeat. A single lookup may be an old one that arrives late.
    #[serde(default)]
    pub repeated: bool,
    /// Where it asked from.
    #[serde(default)]
    pub address: Option<IpAddr>,
    /// It fetched the boot script.
    #[serde(default)]
    pub fetched: bool,
}

impl SecondAgent {
    /// Whether the lookup shows that another agent runs now. An agent that names its boot keeps asking; ironic-python-agent
    /// names none, and asks once.
    pub fn is_certain(&self) -> bool {
        self.boot_id.is_none() || self.repeated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_kind_of_agent_is_stored_and_read_back() {
        let state = json!({
            "boot_id": "b", "process_id": "p", "evidence_key": null, "running": "c1", "ended": ["c0"],
            "progress": {"disks": []},
        });
        let stored = |agent: &Option<AgentKind>| {
            serde_json::to_value(Contact { agent: agent.clone(), ..Contact::default() }).unwrap()
        };
        let anneal = AgentKind::Anneal(serde_json::from_value(state.clone()).unwrap());
        for (agent, form) in
            [(None, Value::Null), (Some(AgentKind::Ipa), json!("ironic-python-agent")), (Some(anneal), state)]
        {
            let row = stored(&agent);
            assert_eq!(row["state"], form);
            assert_eq!(serde_json::from_value::<Contact>(row).unwrap().agent, agent);
        }
    }
}
