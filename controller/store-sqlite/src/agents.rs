//! Contact with agents.

use crate::SqliteStore;
use crate::sql::contact;
use crate::writer::Change;
use async_trait::async_trait;
use model::agent::{Contact, UnsignedAgent};
use model::boot::BootNonce;
use model::boot_proof::BootProof;
use std::sync::Arc;
use store::{AgentStore, HeartbeatRecord, Result, ScriptFetch, ScriptGrant, TokenGrant, TokenRequest};
use uuid::Uuid;

#[async_trait]
impl AgentStore for SqliteStore {
    async fn contact(&self, node: Uuid) -> Result<Contact> {
        let contact = self.of_each(&[node], contact::read).await?.pop();
        Ok(contact.map(Arc::unwrap_or_clone).unwrap_or_default())
    }

    async fn contacts(&self, nodes: &[Uuid]) -> Result<Vec<Contact>> {
        Ok(self.shared_contacts(nodes).await?.into_iter().map(Arc::unwrap_or_clone).collect())
    }

    async fn shared_contacts(&self, nodes: &[Uuid]) -> Result<Vec<Arc<Contact>>> {
        self.of_each(nodes, contact::read).await
    }

    async fn grant_token(&self, node: Uuid, request: TokenRequest) -> Result<TokenGrant> {
        let grant = move |change: &mut Change<'_>| contact::grant_token(change, node, request);
        self.writer.write_node(node, grant).await
    }

    async fn fetch_script(&self, node: Uuid, fetch: ScriptFetch) -> Result<ScriptGrant> {
        let fetched = move |change: &mut Change<'_>| {
            let (grant, changed) = contact::fetch_script(change, node, &fetch)?;
            if changed {
                change.ring(node);
            }
            Ok(grant)
        };
        self.writer.write(fetched).await
    }

    async fn record_proof(&self, node: Uuid, nonce: &BootNonce, proof: BootProof) -> Result<bool> {
        let nonce = nonce.clone();
        let prove = move |change: &mut Change<'_>| contact::record_proof(change, node, &nonce, proof);
        self.writer.write(prove).await
    }

    async fn record_heartbeat(&self, node: Uuid, token: &str, beat: HeartbeatRecord) -> Result<()> {
        let token = token.to_owned();
        let record = move |change: &mut Change<'_>| contact::record_heartbeat(change, node, &token, beat);
        self.writer.write_node_in_one_statement(node, record).await
    }

    async fn refuse_unsigned(&self, node: Uuid, token: &str, agent: UnsignedAgent) -> Result<()> {
        let token = token.to_owned();
        let note = move |change: &mut Change<'_>| {
            if contact::refuse_unsigned(change, node, &token, agent)? {
                change.ring(node);
            }
            Ok(())
        };
        self.writer.write(note).await
    }
}
