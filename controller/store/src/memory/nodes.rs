//! Nodes.

use super::MemoryStore;
use super::state::{Row, State};
use crate::basis;
use crate::bell::Bell;
use crate::error::{Noun, Result, StoreError, Unique};
use crate::history_limits;
use crate::inventory;
use crate::lease::Lease;
use crate::node_field::{FieldValue, NodeField};
use crate::node_filter::NodeFilter;
use crate::node_query::{NodePage, NodeQuery};
use crate::nodes::NodeStore;
use async_trait::async_trait;
use model::agent::Contact;
use model::history::StateAtEvent;
use model::{Catalogue, Certificate, ConductorReport, Event, Inventory, Node, Scope, StepKind, Timestamp};
use std::collections::BTreeMap;
use uuid::Uuid;

impl State {
    /// Add a node. Its version becomes 1.
    pub(super) fn insert(&mut self, node: &mut Node, events: &[Event]) -> Result<()> {
        if self.nodes.contains_key(&node.uuid) {
            return Err(StoreError::duplicate(Unique::NodeUuid, node.uuid));
        }
        basis::check(node, || Ok(None))?;
        self.unique_node(node)?;
        node.version = 1;
        let mut history = self.log_write(node, &StateAtEvent::of(node), events);
        history_limits::prune(&mut history);
        let row = Row {
            node: node.clone(),
            history,
            contact: Contact::default(),
            catalogues: BTreeMap::new(),
            inventory: None,
            lease: None,
        };
        self.nodes.insert(node.uuid, row);
        Ok(())
    }

    pub(super) fn delete(&mut self, uuid: Uuid, version: u64, events: &[Event]) -> Result<()> {
        let node = self.row(uuid)?.node.clone();
        if node.version != version {
            return Err(StoreError::Stale(uuid));
        }
        self.log_write(&node, &StateAtEvent::of(&node), events);
        self.nodes.remove(&uuid);
        self.resources.retain(|_, resource| resource.node != Some(uuid));
        self.bundles.retain(|(_, scope), _| *scope != Scope::Node(uuid));
        Ok(())
    }

    pub(super) fn update(&mut self, node: &mut Node, events: Vec<Event>, lease: Option<Lease>) -> Result<()> {
        let row = self.row(node.uuid)?;
        if row.node.version != node.version || lease.is_some_and(|lease| !row.holds(lease)) {
            return Err(StoreError::Stale(node.uuid));
        }
        let stored = row.node.provision_state;
        basis::check(node, || Ok(Some(stored)))?;
        self.unique_node(node)?;
        node.version += 1;
        let stood = StateAtEvent::of(&self.row(node.uuid)?.node);
        let history = self.log_write(node, &stood, &events);
        let row = self.row(node.uuid)?;
        if !history.is_empty() {
            row.history.extend(history);
            history_limits::prune(&mut row.history);
        }
        row.node = node.clone();
        self.resources.retain(|_, resource| !resource.ends_with(node));
        Ok(())
    }

    /// Refuses a node whose name or instance UUID belongs to another one.
    fn unique_node(&self, node: &Node) -> Result<()> {
        for other in self.nodes.values().map(|row| &row.node).filter(|other| other.uuid != node.uuid) {
            if let Some(name) = node.name.as_ref().filter(|_| other.name == node.name) {
                return Err(StoreError::duplicate(Unique::NodeName, name));
            }
            if let Some(instance) = node.instance_uuid.filter(|_| other.instance_uuid == node.instance_uuid) {
                return Err(StoreError::duplicate(Unique::InstanceUuid, instance));
            }
        }
        Ok(())
    }
}

#[async_trait]
impl NodeStore for MemoryStore {
    async fn create_node(&self, mut node: Node, events: Vec<Event>) -> Result<Node> {
        self.state().insert(&mut node, &events)?;
        self.bell.ring(node.uuid);
        Ok(node)
    }

    async fn node(&self, uuid: Uuid) -> Result<Node> {
        Ok(self.state().row(uuid)?.node.clone())
    }

    async fn node_by_ident(&self, ident: &str) -> Result<Node> {
        let state = self.state();
        let by_uuid = Uuid::parse_str(ident).ok().and_then(|uuid| state.nodes.get(&uuid));
        by_uuid
            .or_else(|| state.nodes.values().find(|row| row.node.name.as_deref() == Some(ident)))
            .map(|row| row.node.clone())
            .ok_or_else(|| StoreError::not_found(Noun::Node, ident))
    }

    async fn nodes(&self) -> Result<Vec<Node>> {
        let mut nodes: Vec<_> = self.state().nodes.values().map(|row| row.node.clone()).collect();
        nodes.sort_by_key(|node| (node.created_at, node.uuid));
        Ok(nodes)
    }

    async fn node_page(&self, query: NodeQuery) -> Result<NodePage> {
        Ok(query.page_of(self.state().nodes.values().map(|row| &row.node)))
    }

    async fn count_nodes(
        &self,
        fields: &[NodeField],
        project: Option<&str>,
    ) -> Result<BTreeMap<Vec<FieldValue>, usize>> {
        let filter =
            project.map_or_else(NodeFilter::default, |project| NodeFilter::default().within(project));
        let mut counts = BTreeMap::new();
        for row in self.state().nodes.values().filter(|row| filter.matches(&row.node)) {
            let values = fields.iter().map(|field| field.read(&row.node)).collect();
            *counts.entry(values).or_default() += 1;
        }
        Ok(counts)
    }

    async fn update_node(&self, mut node: Node, events: Vec<Event>, lease: Option<Lease>) -> Result<Node> {
        self.state().update(&mut node, events, lease)?;
        self.bell.ring(node.uuid);
        Ok(node)
    }

    async fn delete_node(&self, uuid: Uuid, version: u64, events: Vec<Event>) -> Result<()> {
        self.state().delete(uuid, version, &events)?;
        self.bell.ring(uuid);
        Ok(())
    }

    async fn history(&self, node: Uuid) -> Result<Vec<Event>> {
        Ok(self.state().nodes.get(&node).map(|row| row.history.clone()).unwrap_or_default())
    }

    async fn certificates(&self, node: Uuid) -> Result<Vec<Certificate>> {
        Ok(self.state().certificates.get(&node).cloned().unwrap_or_default())
    }

    async fn certificate(&self, id: &str) -> Result<Certificate> {
        let state = self.state();
        let found = state.certificates.values().flatten().find(|certificate| certificate.id == id);
        found.cloned().ok_or_else(|| StoreError::not_found(Noun::Certificate, id))
    }

    async fn certificate_log(&self, from: u64, limit: usize) -> Result<Vec<String>> {
        let before = usize::try_from(from.saturating_sub(1)).unwrap_or(usize::MAX);
        Ok(self.state().certificate_log.iter().skip(before).take(limit).cloned().collect())
    }

    async fn add_key_change(&self, change: String) -> Result<()> {
        let mut state = self.state();
        if !state.key_changes.contains(&change) {
            state.key_changes.push(change);
        }
        Ok(())
    }

    async fn key_changes(&self) -> Result<Vec<String>> {
        Ok(self.state().key_changes.clone())
    }

    async fn catalogue(&self, node: Uuid, kind: StepKind) -> Result<Option<Catalogue>> {
        Ok(self.state().nodes.get(&node).and_then(|row| row.catalogues.get(&kind).cloned()))
    }

    async fn inventory(&self, node: Uuid) -> Result<Option<Inventory>> {
        Ok(self.state().nodes.get(&node).and_then(|row| row.inventory.clone()))
    }

    async fn put_inventory(&self, node: Uuid, inventory: Inventory) -> Result<()> {
        inventory::check(node, &inventory)?;
        self.state().row(node)?.inventory = Some(inventory);
        self.bell.ring(node);
        Ok(())
    }

    async fn lease_holder(&self, node: Uuid, now: Timestamp) -> Result<Option<String>> {
        let state = self.state();
        let held = state.nodes.get(&node).and_then(|row| row.lease.as_ref());
        Ok(held.filter(|held| held.until > now).map(|held| held.holder.clone()))
    }

    async fn conductors(&self) -> Result<Vec<ConductorReport>> {
        Ok(self.state().conductors.values().cloned().collect())
    }

    fn bell(&self) -> &Bell {
        &self.bell
    }
}
