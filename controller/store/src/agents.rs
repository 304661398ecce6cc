//! Contact with agents.

use crate::error::Result;
use async_trait::async_trait;
use mac::Mac;
use model::Timestamp;
use model::agent::{AgentKind, Contact, UnsignedAgent};
use model::boot::BootNonce;
use model::boot_proof::BootProof;
use model::medium_content::MediumContent;
use std::net::IpAddr;
use std::sync::Arc;
use uuid::Uuid;

/// A lookup.
#[derive(Clone, PartialEq)]
pub struct TokenRequest {
    /// The token that the agent is to get. A secret.
    pub token: String,
    /// Boot id that the agent names; only Anneal's agents name one.
    pub boot_id: Option<String>,
    /// The nonce that it shows.
    pub nonce: Option<BootNonce>,
    /// Whether the settings accept agents that show none.
    pub without_nonce: bool,
    /// Whether only the agent gets the token whose boot the node's TPM has proved.
    pub proof_required: bool,
    /// The address that it comes from, where that is known.
    pub address: Option<IpAddr>,
    /// When it came.
    pub at: Timestamp,
}

impl TokenRequest {
    /// A lookup that shows no nonce, under settings that accept it.
    pub fn without_nonce(token: &str, boot_id: Option<&str>, at: Timestamp) -> Self {
        let (token, boot_id) = (token.to_owned(), boot_id.map(str::to_owned));
        Self { token, boot_id, nonce: None, without_nonce: true, proof_required: false, address: None, at }
    }

    /// A lookup that shows this nonce, under settings that demand one.
    pub fn with_nonce(nonce: BootNonce, token: &str, boot_id: Option<&str>, at: Timestamp) -> Self {
        Self { nonce: Some(nonce), without_nonce: false, ..Self::without_nonce(token, boot_id, at) }
    }
}

/// A fetch of a node's boot script, or of its boot medium.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptFetch {
    /// What fetches it.
    pub by: FetchSource,
    /// The address that it came from.
    pub from: IpAddr,
    /// When it came.
    pub at: Timestamp,
    /// What the medium carries, if this is its first read: stored, unless another one was faster.
    pub medium: Option<Box<MediumContent>>,
}

/// What fetches the secret of a boot, as far as the controller can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchSource {
    /// A boot loader, the script. It names the MAC address of its NIC.
    Nic(Mac),
    /// The node's firmware, the medium. It names no MAC address.
    Firmware,
    /// The node's BMC, the medium: the caller has compared its address.
    Bmc,
}

/// Result of a fetch of a boot script.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptGrant {
    /// The script with this nonce.
    Given(BootNonce),
    /// The run awaits no agent, or another address has the script, or an agent has its token. The two latter are noted.
    Withheld,
}

/// Result of a request for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenGrant {
    /// Stored; the agent gets it.
    Given,
    /// Another agent already has one; the request is noted as a rival.
    AlreadyOut,
    /// The node's run does not wait for an agent, or the request does not show the nonce of its boot, or not the boot id that was
    /// proved where a proof is required; nothing is changed.
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
    /// [`AgentStore::contact`] of each of these nodes, in their order.
    async fn contacts(&self, nodes: &[Uuid]) -> Result<Vec<Contact>> {
        let mut contacts = Vec::with_capacity(nodes.len());
        for node in nodes {
            contacts.push(self.contact(*node).await?);
        }
        Ok(contacts)
    }
    /// The same, not copied where the store has them in memory.
    async fn shared_contacts(&self, nodes: &[Uuid]) -> Result<Vec<Arc<Contact>>> {
        Ok(self.contacts(nodes).await?.into_iter().map(Arc::new).collect())
    }
    /// Store the token if the node has none, its run awaits an agent ([`model::Run::awaits_agent`]) and the request shows
    /// the nonce of the boot; note a rival if the node has one. Atomic: of two agents at once one gets it, and none when the
    /// run moves on at the same time.
    async fn grant_token(&self, node: Uuid, request: TokenRequest) -> Result<TokenGrant>;
    /// The boot script of a node: for the first address that asks while the run awaits an agent, until the agent has its
    /// token. Any other fetch is noted as a rival. Writes only what is new.
    async fn fetch_script(&self, node: Uuid, fetch: ScriptFetch) -> Result<ScriptGrant>;
    /// Store what the node's TPM proved of the boot with this nonce. False, and nothing changed: the boot is over, its run awaits no
    /// agent, or the agent of another boot has the token.
    async fn record_proof(&self, node: Uuid, nonce: &BootNonce, proof: BootProof) -> Result<bool>;
    /// Store an accepted heartbeat, if `token` is still the node's (else `Stale`). Rings the bell.
    /// May be committed together with other heartbeats, but is committed when this returns.
    async fn record_heartbeat(&self, node: Uuid, token: &str, heartbeat: HeartbeatRecord) -> Result<()>;
    /// Note that the agent with this token was not accepted, because it does not sign. Once for each boot, which rings the bell;
    /// nothing if `token` is not the node's.
    async fn refuse_unsigned(&self, node: Uuid, token: &str, agent: UnsignedAgent) -> Result<()>;
}
