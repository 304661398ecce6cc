//! What the store in memory holds.

use crate::error::{Noun, Result, StoreError};
use crate::lease::Lease;
use model::agent::Contact;
use model::history::StateAtEvent;
use model::{
    Bundle, Catalogue, Certificate, ConductorReport, Event, Inventory, Node, Resource, ResourceKind, Scope,
    StepKind, Timestamp,
};
use std::collections::BTreeMap;
use uuid::Uuid;

#[derive(Debug, Default, Clone)]
pub struct State {
    pub nodes: BTreeMap<Uuid, Row>,
    pub resources: BTreeMap<(ResourceKind, Uuid), Resource>,
    pub bundles: BTreeMap<(String, Scope), Bundle>,
    /// By node, each from number 1. They outlive it.
    pub certificates: BTreeMap<Uuid, Vec<Certificate>>,
    /// Lines of the log of certificates.
    pub certificate_log: Vec<String>,
    /// Changes of the key that signs them.
    pub key_changes: Vec<String>,
    /// Largest epoch given out for any node; never reused, even when a node is deleted and enrolled again.
    pub last_epoch: u64,
    /// By hostname.
    pub conductors: BTreeMap<String, ConductorReport>,
}

/// A node with all that goes when it goes (except its resources).
#[derive(Debug, Clone)]
pub struct Row {
    pub node: Node,
    pub history: Vec<Event>,
    pub contact: Contact,
    pub catalogues: BTreeMap<StepKind, Catalogue>,
    pub inventory: Option<Inventory>,
    pub lease: Option<Held>,
}

#[derive(Debug, Clone)]
pub struct Held {
    pub epoch: u64,
    pub holder: String,
    pub until: Timestamp,
}

impl Row {
    pub fn holds(&self, lease: Lease) -> bool {
        self.node.uuid == lease.node && self.lease.as_ref().is_some_and(|held| held.epoch == lease.epoch)
    }
}

impl State {
    pub fn row(&mut self, node: Uuid) -> Result<&mut Row> {
        self.nodes.get_mut(&node).ok_or_else(|| StoreError::not_found(Noun::Node, node))
    }

    /// The row of a node, while `lease` is its newest if one is given.
    pub fn row_under(&mut self, node: Uuid, lease: Option<Lease>) -> Result<&mut Row> {
        let row = self.row(node)?;
        if lease.is_some_and(|lease| !row.holds(lease)) { Err(StoreError::Stale(node)) } else { Ok(row) }
    }
}

/// The events, with how `node` stood.
pub fn noted(mut events: Vec<Event>, node: &Node) -> Vec<Event> {
    let stood = StateAtEvent::of(node);
    events.iter_mut().for_each(|event| event.note(&stood));
    events
}
