//! Contact with agents.

use crate::PostgresStore;
use crate::sql::contact;
use async_trait::async_trait;
use model::agent::{Contact, UnsignedAgent};
use model::boot::BootNonce;
use model::boot_proof::BootProof;
use store::{AgentStore, HeartbeatRecord, Result, ScriptFetch, ScriptGrant, TokenGrant, TokenRequest};
use uuid::Uuid;

#[async_trait]
impl AgentStore for PostgresStore {
    async fn contact(&self, node: Uuid) -> Result<Contact> {
        Ok(self.contacts(&[node]).await?.pop().unwrap_or_default())
    }

    async fn contacts(&self, nodes: &[Uuid]) -> Result<Vec<Contact>> {
        let found = self.database.read(|client, _| Box::pin(contact::of_nodes(client, nodes))).await?;
        Ok(nodes.iter().map(|node| found.get(node).cloned().unwrap_or_default()).collect())
    }

    async fn grant_token(&self, node: Uuid, request: TokenRequest) -> Result<TokenGrant> {
        let (key, request) = (&self.key, &request);
        let grant = self.database.write(|change, _| {
            Box::pin(async move {
                let grant = contact::grant_token(change, key, node, request.clone()).await?;
                change.ring(node);
                Ok(grant)
            })
        });
        grant.await
    }

    async fn fetch_script(&self, node: Uuid, fetch: ScriptFetch) -> Result<ScriptGrant> {
        let (key, fetch) = (&self.key, &fetch);
        let grant = self.database.write(|change, _| {
            Box::pin(async move {
                let (grant, changed) = contact::fetch_script(change, key, node, fetch).await?;
                if changed {
                    change.ring(node);
                }
                Ok(grant)
            })
        });
        grant.await
    }

    async fn record_proof(&self, node: Uuid, nonce: &BootNonce, proof: BootProof) -> Result<bool> {
        let (key, proof) = (&self.key, &proof);
        let stored = self
            .database
            .write(|change, _| Box::pin(contact::record_proof(change, key, node, nonce, proof.clone())));
        stored.await
    }

    async fn record_heartbeat(&self, node: Uuid, token: &str, beat: HeartbeatRecord) -> Result<()> {
        let beat = &beat;
        let record = self.database.write(|change, _| {
            Box::pin(async move {
                contact::record_heartbeat(change, node, token, beat.clone()).await?;
                change.ring(node);
                Ok(())
            })
        });
        record.await
    }

    async fn refuse_unsigned(&self, node: Uuid, token: &str, agent: UnsignedAgent) -> Result<()> {
        let agent = &agent;
        let note = self.database.write(|change, _| {
            Box::pin(async move {
                if contact::refuse_unsigned(change, node, token, agent.clone()).await? {
                    change.ring(node);
                }
                Ok(())
            })
        });
        note.await
    }
}
