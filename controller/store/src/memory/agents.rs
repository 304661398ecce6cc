//! Contact with agents.

use super::MemoryStore;
use crate::agents::{AgentStore, HeartbeatRecord, TokenGrant};
use crate::contact;
use crate::error::{Result, StoreError};
use async_trait::async_trait;
use model::Timestamp;
use model::agent::Contact;
use uuid::Uuid;

#[async_trait]
impl AgentStore for MemoryStore {
    async fn contact(&self, node: Uuid) -> Result<Contact> {
        Ok(self.state().nodes.get(&node).map(|row| row.contact.clone()).unwrap_or_default())
    }

    async fn grant_token(
        &self,
        node: Uuid,
        token: &str,
        boot_id: Option<&str>,
        at: Timestamp,
    ) -> Result<TokenGrant> {
        let grant = {
            let mut state = self.state();
            let row = state.row(node)?;
            contact::grant(&mut row.contact, row.node.run.as_ref(), token, boot_id, at)
        };
        self.bell.ring(node);
        Ok(grant)
    }

    async fn record_heartbeat(&self, node: Uuid, token: &str, beat: HeartbeatRecord) -> Result<()> {
        if !contact::beat(&mut self.state().row(node)?.contact, token, beat) {
            return Err(StoreError::Stale(node));
        }
        self.bell.ring(node);
        Ok(())
    }
}
