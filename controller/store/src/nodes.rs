//! Nodes and what is read of them.

use crate::bell::Bell;
use crate::error::Result;
use crate::lease::Lease;
use crate::node_field::{FieldValue, NodeField};
use crate::node_query::{NodePage, NodeQuery};
use async_trait::async_trait;
use model::{
    Catalogue, Certificate, ConductorReport, Event, Inventory, Node, ProvisionState, StepKind, Timestamp,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// Nodes, with their history, certificates, steps and inventory.
#[async_trait]
pub trait NodeStore: Send + Sync {
    /// Enrol a node. Its version becomes 1.
    async fn create_node(&self, node: Node, events: Vec<Event>) -> Result<Node>;
    /// The node with this UUID.
    async fn node(&self, uuid: Uuid) -> Result<Node>;
    /// The same, not copied where the store has it in memory.
    async fn shared_node(&self, uuid: Uuid) -> Result<Arc<Node>> {
        self.node(uuid).await.map(Arc::new)
    }
    /// The node with this UUID (any letter case) or name.
    async fn node_by_ident(&self, ident: &str) -> Result<Node>;
    /// All nodes, ordered by creation then UUID: for what needs every node of the fleet, never for a list.
    async fn nodes(&self) -> Result<Vec<Node>>;
    /// A page of a list of nodes, as [`NodeQuery::page_of`] gives it of all nodes. It costs what the page costs; of several
    /// filters, what the one that lets the fewest nodes pass costs.
    ///
    /// # Errors
    /// `TooSlow`.
    async fn node_page(&self, query: NodeQuery) -> Result<NodePage>;
    /// The same for who looks at every node once: they do not stay in memory.
    async fn node_page_once(&self, query: NodeQuery) -> Result<NodePage> {
        self.node_page(query).await
    }
    /// How many nodes of `project` (or of all) have each combination of values of these fields, of which there is at least one. The
    /// index of the first field is read, and no document.
    async fn count_nodes(
        &self,
        fields: &[NodeField],
        project: Option<&str>,
    ) -> Result<BTreeMap<Vec<FieldValue>, usize>>;
    /// The nodes in these states, ordered as [`NodeStore::nodes`].
    async fn nodes_in(&self, states: &[ProvisionState]) -> Result<Vec<Node>> {
        let mut nodes = self.nodes().await?;
        nodes.retain(|node| states.contains(&node.provision_state));
        Ok(nodes)
    }
    /// Write a node at the version it carries; it comes back one larger. With `lease`, only while that lease
    /// is the newest of the node. Rings the bell. Deletes the allocation that this write ends
    /// ([`model::Resource::ends_with`]).
    async fn update_node(&self, node: Node, events: Vec<Event>, lease: Option<Lease>) -> Result<Node>;
    /// Delete a node at this version, with its ports, resources, contact, catalogue, inventory, history and the
    /// bundles scoped to it. Its certificates stay, and its events in the log, to which these are added.
    async fn delete_node(&self, uuid: Uuid, version: u64, events: Vec<Event>) -> Result<()>;
    /// History of a node, oldest first. The store has noted in each event the state of the node before the write
    /// that brought it (for a new node: its state when enrolled).
    async fn history(&self, node: Uuid) -> Result<Vec<Event>>;

    /// Certificates of a node, oldest first; also of a deleted node.
    async fn certificates(&self, node: Uuid) -> Result<Vec<Certificate>>;
    /// The certificate with this digest.
    async fn certificate(&self, id: &str) -> Result<Certificate>;
    /// Lines of the log of the heads of all chains of certificates, from this index (from 1) on, at most `limit`. Each
    /// certificate has one, stored in the same write; lines are never changed or removed.
    async fn certificate_log(&self, from: u64, limit: usize) -> Result<Vec<String>>;
    /// Store a change of the key that signs certificates, once.
    async fn add_key_change(&self, change: String) -> Result<()>;
    /// All changes of the key, oldest first.
    async fn key_changes(&self) -> Result<Vec<String>>;

    /// The steps of this kind that a node is known to offer.
    async fn catalogue(&self, node: Uuid, kind: StepKind) -> Result<Option<Catalogue>>;

    /// What the last inspection of a node found.
    async fn inventory(&self, node: Uuid) -> Result<Option<Inventory>>;
    /// Store it in place of an earlier one; at most [`crate::inventory::MAX`] bytes. Rings the bell.
    async fn put_inventory(&self, node: Uuid, inventory: Inventory) -> Result<()>;

    /// Write something that changes nothing, as far as every write goes: to the disk.
    ///
    /// # Errors
    /// Writes fail; the error says why.
    async fn check_writable(&self) -> Result<()> {
        Ok(())
    }

    /// The holder of an unexpired lease of the node at `now`: Ironic's `reservation`.
    async fn lease_holder(&self, node: Uuid, now: Timestamp) -> Result<Option<String>>;
    /// [`NodeStore::lease_holder`] of each of these nodes that has one.
    async fn lease_holders(&self, nodes: &[Uuid], now: Timestamp) -> Result<BTreeMap<Uuid, String>> {
        let mut holders = BTreeMap::new();
        for node in nodes {
            holders.extend(self.lease_holder(*node, now).await?.map(|holder| (*node, holder)));
        }
        Ok(holders)
    }

    /// The controllers that have reported themselves and were not removed, by name.
    async fn conductors(&self) -> Result<Vec<ConductorReport>>;

    /// The bell that rings for every changed node.
    fn bell(&self) -> &Bell;
}
