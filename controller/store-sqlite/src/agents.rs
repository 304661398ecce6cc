//! Contact with agents.

use crate::SqliteStore;
use crate::sql::contact;
use crate::writer::Change;
use async_trait::async_trait;
use model::Timestamp;
use model::agent::Contact;
use store::{AgentStore, HeartbeatRecord, Result, TokenGrant};
use uuid::Uuid;

#[async_trait]
impl AgentStore for SqliteStore {
    async fn contact(&self, node: Uuid) -> Result<Contact> {
        self.readers.read(move |connection| contact::of_node(connection, node)).await
    }

    async fn grant_token(
        &self,
        node: Uuid,
        token: &str,
        boot_id: Option<&str>,
        at: Timestamp,
    ) -> Result<TokenGrant> {
        let (token, boot_id) = (token.to_owned(), boot_id.map(str::to_owned));
        let grant =
            move |change: &mut Change<'_>| contact::grant_token(change, node, &token, boot_id.as_deref(), at);
        self.writer.write_node(node, grant).await
    }

    async fn record_heartbeat(&self, node: Uuid, token: &str, beat: HeartbeatRecord) -> Result<()> {
        let token = token.to_owned();
        let record = move |change: &mut Change<'_>| contact::record_heartbeat(change, node, &token, beat);
        self.writer.write_node(node, record).await
    }
}
