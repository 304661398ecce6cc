//! Contact with agents.

use crate::error::Result;
use async_trait::async_trait;
use model::Timestamp;
use model::agent::{AgentKind, Contact};
use uuid::Uuid;

/// Result of a request for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenGrant {
    /// Stored; the agent gets it.
    Given,
    /// Another agent already has one; the request is noted as a rival.
    AlreadyOut,
    /// The node's run does not wait for an agent; nothing is changed.
    NotAwaited,
}

/// One accepted heartbeat.
#[derive(Debug, Clone, PartialEq)]
pub struct HeartbeatRecord {
    /// URL of the agent's API.
    pub callback_url: String,
    /// PEM of its certificate.
    pub verify_ca: Option<String>,
    /// Its version.
    pub agent_version: Option<String>,
    /// When it arrived.
    pub at: Timestamp,
    /// The kind of agent, and what it reported of itself.
    pub agent: AgentKind,
}

/// Contact with the agents of nodes: tokens and heartbeats.
#[async_trait]
pub trait AgentStore: Send + Sync {
    /// Contact with the agent of a node; the empty one when there never was any.
    async fn contact(&self, node: Uuid) -> Result<Contact>;
    /// Store `token` if the node has none and its run awaits an agent ([`model::Run::awaits_agent`]); note a rival if it has
    /// one. Atomic: of two agents at once one gets it, and none when the run moves on at the same time.
    async fn grant_token(
        &self,
        node: Uuid,
        token: &str,
        boot_id: Option<&str>,
        at: Timestamp,
    ) -> Result<TokenGrant>;
    /// Store an accepted heartbeat, if `token` is still the node's (else `Stale`). Rings the bell.
    /// May be committed together with other heartbeats, but is committed when this returns.
    async fn record_heartbeat(&self, node: Uuid, token: &str, heartbeat: HeartbeatRecord) -> Result<()>;
}
