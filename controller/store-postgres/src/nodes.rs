//! Nodes.

use crate::PostgresStore;
use crate::failure::failed;
use crate::sql::node::{self, NodeRow};
use crate::sql::{certificate, conductor, contact, inventory, lease, node_list};
use async_trait::async_trait;
use model::{
    Catalogue, Certificate, ConductorReport, Event, Inventory, Node, ProvisionState, StepKind, Timestamp,
};
use std::collections::BTreeMap;
use store::{Bell, FieldValue, Lease, NodeField, NodePage, NodeQuery, NodeStore, Noun, Result, StoreError};
use uuid::Uuid;

#[async_trait]
impl NodeStore for PostgresStore {
    async fn create_node(&self, node: Node, events: Vec<Event>) -> Result<Node> {
        let new = NodeRow::of(&self.key, Node { version: 1, ..node })?;
        let (of, events) = (&new, &events);
        let create = self.database.write(|change, _| {
            Box::pin(async move {
                node::insert(change, of, events).await?;
                change.ring(of.node.uuid);
                Ok(())
            })
        });
        create.await?;
        Ok(new.node)
    }

    async fn node(&self, uuid: Uuid) -> Result<Node> {
        let key = &self.key;
        let found = self.database.read(|client, _| Box::pin(node::by_uuid(client, key, uuid))).await?;
        found.ok_or_else(|| StoreError::not_found(Noun::Node, uuid))
    }

    async fn node_by_ident(&self, ident: &str) -> Result<Node> {
        let key = &self.key;
        let found = self.database.read(|client, _| Box::pin(node::by_ident(client, key, ident))).await?;
        found.ok_or_else(|| StoreError::not_found(Noun::Node, ident))
    }

    async fn nodes(&self) -> Result<Vec<Node>> {
        let key = &self.key;
        self.database.read(|client, _| Box::pin(node::all(client, key))).await
    }

    async fn node_page(&self, query: NodeQuery) -> Result<NodePage> {
        let (key, query) = (&self.key, &query);
        self.database
            .read_within(query.time_limit, |change, _| Box::pin(node_list::page(change, key, query)))
            .await
    }

    async fn count_nodes(
        &self,
        fields: &[NodeField],
        project: Option<&str>,
    ) -> Result<BTreeMap<Vec<FieldValue>, usize>> {
        self.database.read(|client, _| Box::pin(node_list::count(client, fields, project))).await
    }

    async fn nodes_in(&self, states: &[ProvisionState]) -> Result<Vec<Node>> {
        let key = &self.key;
        self.database.read(|client, _| Box::pin(node::in_states(client, key, states))).await
    }

    async fn update_node(&self, node: Node, events: Vec<Event>, lease: Option<Lease>) -> Result<Node> {
        let new = NodeRow::next(&self.key, node)?;
        let (of, events) = (&new, &events);
        let update = self.database.write(|change, _| {
            Box::pin(async move {
                node::update(change, of, events, lease).await?;
                change.ring(of.node.uuid);
                Ok(())
            })
        });
        update.await?;
        Ok(new.node)
    }

    async fn delete_node(&self, uuid: Uuid, version: u64, events: Vec<Event>) -> Result<()> {
        let (key, events) = (&self.key, &events);
        let delete = self.database.write(|change, _| {
            Box::pin(async move {
                node::delete(change, key, uuid, version, events).await?;
                change.ring(uuid);
                Ok(())
            })
        });
        delete.await
    }

    async fn history(&self, node: Uuid) -> Result<Vec<Event>> {
        self.database.read(|client, _| Box::pin(node::history(client, node))).await
    }

    async fn certificates(&self, node: Uuid) -> Result<Vec<Certificate>> {
        self.database.read(|client, _| Box::pin(certificate::of_node(client, node))).await
    }

    async fn certificate(&self, id: &str) -> Result<Certificate> {
        self.database.read(|client, _| Box::pin(certificate::by_id(client, id))).await
    }

    async fn certificate_log(&self, from: u64, limit: usize) -> Result<Vec<String>> {
        self.database.read(|client, _| Box::pin(certificate::lines(client, from, limit))).await
    }

    async fn add_key_change(&self, change: String) -> Result<()> {
        let doc = change.as_str();
        let add = self.database.write(|change, _| {
            certificate::add_key_change(change, doc);
            Box::pin(async { Ok(()) })
        });
        add.await
    }

    async fn key_changes(&self) -> Result<Vec<String>> {
        self.database.read(|client, _| Box::pin(certificate::key_changes(client))).await
    }

    async fn catalogue(&self, node: Uuid, kind: StepKind) -> Result<Option<Catalogue>> {
        self.database.read(|client, _| Box::pin(contact::catalogue(client, node, kind))).await
    }

    async fn inventory(&self, node: Uuid) -> Result<Option<Inventory>> {
        self.database.read(|client, _| Box::pin(inventory::of_node(client, node))).await
    }

    async fn put_inventory(&self, node: Uuid, inventory: Inventory) -> Result<()> {
        let doc = inventory::document(node, inventory)?;
        let doc = doc.as_str();
        let put = self.database.write(|change, _| {
            Box::pin(async move {
                inventory::write(change, node, doc).await?;
                change.ring(node);
                Ok(())
            })
        });
        put.await
    }

    async fn check_writable(&self) -> Result<()> {
        // A row that is written anew, as every write does.
        let rewrite = self.database.write(|change, _| {
            Box::pin(async move {
                let written = change.execute("UPDATE anneal_schema SET version = version", &[]).await;
                written.map(drop).map_err(failed("a test of writing"))
            })
        });
        rewrite.await
    }

    async fn lease_holder(&self, node: Uuid, now: Timestamp) -> Result<Option<String>> {
        Ok(self.lease_holders(&[node], now).await?.remove(&node))
    }

    async fn lease_holders(&self, nodes: &[Uuid], now: Timestamp) -> Result<BTreeMap<Uuid, String>> {
        self.database.read(|client, _| Box::pin(lease::holders(client, nodes, now))).await
    }

    async fn conductors(&self) -> Result<Vec<ConductorReport>> {
        self.database.read(|client, _| Box::pin(conductor::all(client))).await
    }

    fn bell(&self) -> &Bell {
        &self.database.bell
    }
}
