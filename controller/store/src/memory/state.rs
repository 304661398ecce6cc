//! What the store in memory holds.

use crate::error::{Noun, Result, StoreError};
use crate::lease::Lease;
use model::agent::Contact;
use model::discovery::DiscoveredMachine;
use model::history::StateAtEvent;
use model::{
    Bundle, Catalogue, Certificate, ConductorReport, DeadLetter, Delivery, Event, Inventory, LoggedEvent,
    Node, Resource, ResourceKind, Scope, StepKind, Timestamp,
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
    /// The log of the events of all nodes, by their numbers.
    pub log: BTreeMap<u64, LoggedEvent>,
    /// Number of the newest one that ever was.
    pub last_event: u64,
    /// By webhook.
    pub deliveries: BTreeMap<String, Delivery>,
    /// By webhook and number of the event.
    pub dead_letters: BTreeMap<(String, u64), DeadLetter>,
    /// Machines that no node is known for, by id.
    pub machines: BTreeMap<Uuid, DiscoveredMachine>,
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

impl State {
    /// Add the events of a write that left `node` to the log; those that are of its history.
    pub fn log_write(&mut self, node: &Node, stood: &StateAtEvent, events: &[Event]) -> Vec<Event> {
        let logged = LoggedEvent::of_write(node, stood, events);
        let history = logged.iter().map(|one| &one.event).filter(|event| event.kind.is_history());
        let history = history.cloned().collect();
        logged.into_iter().for_each(|one| self.log_event(one));
        history
    }

    /// Add an event to the log.
    pub fn log_event(&mut self, event: LoggedEvent) {
        self.last_event += 1;
        self.log.insert(self.last_event, event);
    }
}
