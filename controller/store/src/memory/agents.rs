//! Contact with agents.

use super::MemoryStore;
use crate::agents::{AgentStore, HeartbeatRecord, ScriptFetch, ScriptGrant, TokenGrant, TokenRequest};
use crate::contact;
use crate::error::{Result, StoreError};
use async_trait::async_trait;
use model::agent::{Contact, UnsignedAgent};
use model::boot::BootNonce;
use model::boot_proof::BootProof;
use uuid::Uuid;

#[async_trait]
impl AgentStore for MemoryStore {
    async fn contact(&self, node: Uuid) -> Result<Contact> {
        Ok(self.state().nodes.get(&node).map(|row| row.contact.clone()).unwrap_or_default())
    }

    async fn fetch_script(&self, node: Uuid, fetch: ScriptFetch) -> Result<ScriptGrant> {
        let (grant, changed) = {
            let mut state = self.state();
            let row = state.row(node)?;
            let before = row.contact.clone();
            let grant = contact::fetch(&mut row.contact, row.node.run.as_ref(), &fetch);
            (grant, row.contact != before)
        };
        if changed {
            self.bell.ring(node);
        }
        Ok(grant)
    }

    async fn grant_token(&self, node: Uuid, request: TokenRequest) -> Result<TokenGrant> {
        let grant = {
            let mut state = self.state();
            let row = state.row(node)?;
            contact::grant(&mut row.contact, row.node.run.as_ref(), request)
        };
        self.bell.ring(node);
        Ok(grant)
    }

    async fn record_proof(&self, node: Uuid, nonce: &BootNonce, proof: BootProof) -> Result<bool> {
        let mut state = self.state();
        let row = state.row(node)?;
        Ok(contact::prove(&mut row.contact, row.node.run.as_ref(), nonce, proof))
    }

    async fn record_heartbeat(&self, node: Uuid, token: &str, beat: HeartbeatRecord) -> Result<()> {
        if !contact::beat(&mut self.state().row(node)?.contact, token, beat) {
            return Err(StoreError::Stale(node));
        }
        self.bell.ring(node);
        Ok(())
    }

    async fn refuse_unsigned(&self, node: Uuid, token: &str, agent: UnsignedAgent) -> Result<()> {
        if contact::refuse_unsigned(&mut self.state().row(node)?.contact, token, agent) {
            self.bell.ring(node);
        }
        Ok(())
    }
}
