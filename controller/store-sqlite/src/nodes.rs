//! Nodes.

use crate::SqliteStore;
use crate::document::failed;
use crate::node_cache::NodeCache;
use crate::sql::{certificate, certificate_log, conductor, contact, inventory, lease, node, node_list};
use crate::writer::Change;
use crate::written::LeaseState;
use async_trait::async_trait;
use model::{
    Catalogue, Certificate, ConductorReport, Event, Inventory, Node, ProvisionState, StepKind, Timestamp,
};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Bell, FieldValue, Lease, NodeField, NodePage, NodeQuery, NodeStore, Noun, Result, StoreError};
use uuid::Uuid;

#[async_trait]
impl NodeStore for SqliteStore {
    async fn create_node(&self, mut node: Node, events: Vec<Event>) -> Result<Node> {
        let uuid = node.uuid;
        node.version = 1;
        let doc = node::Document::of(&node)?;
        let insert = move |change: &mut Change<'_>| node::insert(change, &doc, &events);
        self.writer.write_node(uuid, insert).await?;
        Ok(node)
    }

    async fn node(&self, uuid: Uuid) -> Result<Node> {
        self.shared_node(uuid).await.map(Arc::unwrap_or_clone)
    }

    async fn shared_node(&self, uuid: Uuid) -> Result<Arc<Node>> {
        if let Some(known) = self.cache.get(uuid) {
            return Ok(known);
        }
        let reading = self.cache.reading();
        let found = self.readers.read(move |connection| node::read(connection, &reading, uuid)).await?;
        found.ok_or_else(|| StoreError::not_found(Noun::Node, uuid))
    }

    async fn node_by_ident(&self, ident: &str) -> Result<Node> {
        let known = Uuid::parse_str(ident).ok().and_then(|uuid| self.cache.get(uuid));
        if let Some(known) = known {
            return Ok(Arc::unwrap_or_clone(known));
        }
        let (wanted, reading) = (ident.to_owned(), self.cache.reading());
        let found =
            self.readers.read(move |connection| node::by_ident(connection, &reading, &wanted)).await?;
        found.ok_or_else(|| StoreError::not_found(Noun::Node, ident))
    }

    async fn nodes(&self) -> Result<Vec<Node>> {
        self.readers.read(node::all).await
    }

    async fn node_page(&self, query: NodeQuery) -> Result<NodePage> {
        let (limit, reading) = (query.time_limit, self.cache.reading());
        let page = move |connection: &Connection| node_list::page(connection, &reading, &query);
        self.readers.read_within(limit, page).await
    }

    async fn node_page_once(&self, query: NodeQuery) -> Result<NodePage> {
        let (limit, reading) = (query.time_limit, NodeCache::new(0).reading());
        let page = move |connection: &Connection| node_list::page(connection, &reading, &query);
        self.readers.read_within(limit, page).await
    }

    async fn count_nodes(
        &self,
        fields: &[NodeField],
        project: Option<&str>,
    ) -> Result<BTreeMap<Vec<FieldValue>, usize>> {
        let (fields, project) = (fields.to_vec(), project.map(str::to_owned));
        self.readers.read(move |connection| node_list::count(connection, &fields, project.as_deref())).await
    }

    async fn nodes_in(&self, states: &[ProvisionState]) -> Result<Vec<Node>> {
        let states = states.to_vec();
        self.readers.read(move |connection| node::in_states(connection, &states)).await
    }

    async fn update_node(&self, mut node: Node, events: Vec<Event>, lease: Option<Lease>) -> Result<Node> {
        let uuid = node.uuid;
        node.version = node.version.checked_add(1).ok_or(StoreError::Stale(node.uuid))?;
        let doc = node::Document::of(&node)?;
        let update = move |change: &mut Change<'_>| node::update(change, &doc, &events, lease);
        self.writer.write_node(uuid, update).await?;
        Ok(node)
    }

    async fn delete_node(&self, uuid: Uuid, version: u64, events: Vec<Event>) -> Result<()> {
        let delete = move |change: &mut Change<'_>| {
            node::delete(change, uuid, version, &events)?;
            change.ring(uuid);
            Ok(())
        };
        self.delete(delete).await
    }

    async fn history(&self, node: Uuid) -> Result<Vec<Event>> {
        self.readers.read(move |connection| node::history(connection, node)).await
    }

    async fn certificates(&self, node: Uuid) -> Result<Vec<Certificate>> {
        self.readers.read(move |connection| certificate::of_node(connection, node)).await
    }

    async fn certificate(&self, id: &str) -> Result<Certificate> {
        let id = id.to_owned();
        self.readers.read(move |connection| certificate::by_id(connection, &id)).await
    }

    async fn certificate_log(&self, from: u64, limit: usize) -> Result<Vec<String>> {
        self.readers.read(move |connection| certificate_log::lines(connection, from, limit)).await
    }

    async fn add_key_change(&self, change: String) -> Result<()> {
        self.writer.write(move |connection| certificate_log::add_key_change(connection, &change)).await
    }

    async fn key_changes(&self) -> Result<Vec<String>> {
        self.readers.read(certificate_log::key_changes).await
    }

    async fn catalogue(&self, node: Uuid, kind: StepKind) -> Result<Option<Catalogue>> {
        self.readers.read(move |connection| contact::catalogue(connection, node, kind)).await
    }

    async fn inventory(&self, node: Uuid) -> Result<Option<Inventory>> {
        self.readers.read(move |connection| inventory::of_node(connection, node)).await
    }

    async fn put_inventory(&self, node: Uuid, inventory: Inventory) -> Result<()> {
        // Here and not in the writer: it is work for one, and everybody waits for the writer.
        let doc = inventory::document(node, inventory)?;
        self.writer.write_node(node, move |change| inventory::put(change, node, &doc)).await
    }

    async fn check_writable(&self) -> Result<()> {
        // Written to the log as every page is, even if nothing in it has changed.
        let rewrite = |change: &mut Change<'_>| {
            let version = change.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
            version
                .and_then(|version| change.pragma_update(None, "user_version", version))
                .map_err(failed("a test of writing"))
        };
        self.writer.write(rewrite).await?;
        self.on_reserve(|reserve| {
            reserve.fill();
            true
        })
        .await;
        Ok(())
    }

    async fn conductors(&self) -> Result<Vec<ConductorReport>> {
        self.readers.read(conductor::all).await
    }

    async fn lease_holder(&self, node: Uuid, now: Timestamp) -> Result<Option<String>> {
        Ok(self.lease_holders(&[node], now).await?.remove(&node))
    }

    async fn lease_holders(&self, nodes: &[Uuid], now: Timestamp) -> Result<BTreeMap<Uuid, String>> {
        let leases: Vec<LeaseState> = self.of_each(nodes, lease::read).await?;
        let held = nodes.iter().zip(leases);
        Ok(held.filter_map(|(node, lease)| Some((*node, lease.holder(now)?.to_owned()))).collect())
    }

    fn bell(&self) -> &Bell {
        &self.bell
    }
}
