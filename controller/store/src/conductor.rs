//! What only a conductor does: leases, wake-up times, and the reads and writes of a pass over a node.

use crate::error::Result;
use crate::lease::Lease;
use async_trait::async_trait;
use model::agent::Contact;
use model::boot::Boot;
use model::{Catalogue, Certificate, ConductorReport, Event, Inventory, Node, Resource, StepKind, Timestamp};
use uuid::Uuid;

/// What an inspection changes besides the node.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspected {
    /// The inventory.
    pub inventory: Inventory,
    /// Ports of the node to change, each at the version it was read at; with its UUID, address and node.
    pub ports: Vec<Resource>,
    /// Ports to create, except those whose address already belongs to a port.
    pub new_ports: Vec<Resource>,
}

/// The conductor's part of the store. The API has no access to it.
#[async_trait]
pub trait ConductorStore: Send + Sync {
    /// Whether other controllers may use the same store at the same time.
    fn is_shared(&self) -> bool {
        false
    }
    /// The time of the clock that all controllers of a shared store go by; none: each has its own store and goes by its own.
    async fn clock(&self) -> Result<Option<Timestamp>> {
        Ok(None)
    }
    /// Store that this controller is alive, in place of its report before.
    async fn report_conductor(&self, report: ConductorReport) -> Result<()>;
    /// Remove the report of a controller, if there is one.
    async fn remove_conductor(&self, hostname: &str) -> Result<()>;

    /// Take the lease of a node for `holder` until `until`, unless another holder has one that is unexpired at
    /// `now` (the same holder may take it again; the epoch grows).
    async fn take_lease(
        &self,
        node: Uuid,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Lease>>;
    /// Extend a lease that is still the newest of its node; false if it is not.
    async fn renew_lease(&self, lease: Lease, until: Timestamp) -> Result<bool>;
    /// Release a lease, if it is still the newest.
    async fn release_lease(&self, lease: Lease) -> Result<()>;
    /// The nodes of which this holder has the newest lease, expired or not.
    async fn leased_by(&self, holder: &str) -> Result<Vec<Uuid>>;
    /// Nodes whose `next_wake_at` is not later than `now`, earliest first, at most `limit`.
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Uuid>>;
    /// The earliest `next_wake_at` of all nodes that is later than `now`.
    async fn next_due(&self, now: Timestamp) -> Result<Option<Timestamp>>;

    /// The input of a decision, read at one moment: the node, `None` if it still has the version `known`, and its
    /// contact.
    async fn look(&self, uuid: Uuid, known: Option<u64>) -> Result<(Option<Node>, Contact)>;
    /// As [`NodeStore::update_node`](crate::NodeStore::update_node), with a certificate of that node and its line in the
    /// log of certificates, in one transaction. `Stale` also when another certificate was stored meanwhile: its number is not the next one.
    async fn certify(
        &self,
        node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        certificate: Certificate,
    ) -> Result<Node>;
    /// As [`NodeStore::update_node`](crate::NodeStore::update_node), with what an inspection changes besides the node,
    /// in one transaction: its inventory, in place of an earlier one, at most [`crate::inventory::MAX`] bytes; and its
    /// ports. `Stale` also when one of them was written or deleted since it was read.
    async fn update_inspected(
        &self,
        node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        inspected: Inspected,
    ) -> Result<Node>;
    /// The newest certificate of a node.
    async fn newest_certificate(&self, node: Uuid) -> Result<Option<Certificate>>;
    /// Store the steps of this kind that a node offers. With `lease`, only while that lease is the newest of the node.
    async fn put_catalogue(
        &self,
        node: Uuid,
        kind: StepKind,
        catalogue: Catalogue,
        lease: Option<Lease>,
    ) -> Result<()>;
    /// Forget the agent of a node (token, URL, certificate), because its boot is over; `next` is the boot that is ordered
    /// now, if any. With `lease`, only while that lease is the newest of the node: the agent may be one that was booted since.
    async fn forget_agent(&self, node: Uuid, next: Option<Boot>, lease: Option<Lease>) -> Result<()>;

    /// Move the stored instants from which durations are measured ([`model::clock_jump`]), and the ends of leases, by this
    /// many microseconds, for all nodes at once. Nodes that have any get a new version, so that no write that was
    /// computed before undoes this.
    async fn shift_clock(&self, by: i64) -> Result<()>;
}
