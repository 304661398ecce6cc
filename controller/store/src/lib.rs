//! What the controller keeps, behind one trait.
//!
//! Rules every implementation holds (and [`conformance`] tests):
//! - A node is written only at the version it was read at; a stale write changes nothing
//!   ([`StoreError::Stale`]). Its history events are stored in the same transaction or not at all.
//! - Contact with agents lives apart from node rows and never makes a node write stale.
//! - What a call acknowledged survives `kill -9`.
//! - No transaction outlives a call, so none is ever held across a network call.
//! - Writing to a node that is not there is [`StoreError::NotFound`] (renewing or giving back its lease is
//!   not: such a lease is merely lost). Reading what hangs on it (contact, catalogue, inventory, history,
//!   ports, lease holder) finds nothing.
//!
//! The API and the conductor meet only here: a committed change of a node, its ports, its contact, its
//! catalogue or its inventory rings the [`Bell`] for it. Leases ring nothing, or taking one would call for another look.

pub mod bell;
pub mod clock;
pub mod conformance;
pub mod contact;
mod event_log;
pub mod inventory;
pub mod memory;
pub mod resource;

use async_trait::async_trait;
pub use bell::Bell;
pub use clock::{Clock, SystemClock};
pub use event_log::log_events;
pub use model::StepKind;
use model::agent::{AgentState, Contact};
use model::{
    Bundle, Catalogue, Certificate, DeployTemplate, Event, Inventory, Node, Port, Resource, ResourceKind,
    Scope, Timestamp,
};
pub use resource::ResourceWrite;
use uuid::Uuid;

/// Why the store refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such thing.
    #[error("{what} {ident} could not be found.")]
    NotFound {
        /// `Node`, `Port`, `Deploy template`, `Bundle`, `Certificate`, a [`ResourceKind::noun`].
        what: &'static str,
        /// What it was asked by.
        ident: String,
    },
    /// A unique value is taken.
    #[error("{what} {value:?} already exists")]
    Duplicate {
        /// `node name`, `node uuid`, `instance uuid`, `port address`, `port uuid`, `deploy template name`,
        /// `deploy template uuid`, `resource uuid`, `resource name`, `resource key`.
        what: &'static str,
        /// The value.
        value: String,
    },
    /// The node, template or resource was written by somebody else since it was read, or the lease was lost.
    #[error("{0} was changed meanwhile")]
    Stale(Uuid),
    /// More than the store keeps.
    #[error("{what} of node {node} has {bytes} bytes, more than {most}")]
    TooLarge {
        /// `The inventory`.
        what: &'static str,
        /// The node.
        node: Uuid,
        /// Its size.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// The database failed.
    #[error("store: {0}")]
    Failed(String),
}

impl StoreError {
    /// `what` (`Node`, `Port`, `Deploy template`) asked for by `ident` is not there.
    pub fn not_found(what: &'static str, ident: impl ToString) -> Self {
        Self::NotFound { what, ident: ident.to_string() }
    }

    /// `value` of `what` belongs to another one already.
    pub fn duplicate(what: &'static str, value: impl ToString) -> Self {
        Self::Duplicate { what, value: value.to_string() }
    }
}

/// Result of a store call.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A lease on a node, taken by one conductor for a while. Every write under it carries its epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The node.
    pub node: Uuid,
    /// Fencing epoch: larger with every lease of the node ever given.
    pub epoch: u64,
}

/// What came of a request for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenGrant {
    /// Stored; the agent gets it.
    Given,
    /// One is out already; noted as a rival.
    AlreadyOut,
}

/// One accepted heartbeat.
#[derive(Debug, Clone, PartialEq)]
pub struct HeartbeatRecord {
    /// URL of the agent's API.
    pub callback_url: String,
    /// PEM of its certificate.
    pub verify_ca: Option<String>,
    /// Its version.
    pub agent_version: Option<String>,
    /// When it arrived.
    pub at: Timestamp,
    /// Anneal's part.
    pub state: Option<AgentState>,
}

/// What an inspection changes beside the node.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspected {
    /// The inventory.
    pub inventory: Inventory,
    /// Ports of the node that change.
    pub ports: Vec<PortChange>,
    /// Ports that are made, but for those whose address has one.
    pub new_ports: Vec<Port>,
}

/// A port that changes.
#[derive(Debug, Clone, PartialEq)]
pub struct PortChange {
    /// As it was read.
    pub read: Port,
    /// As it is to be; of the same UUID, address and node.
    pub new: Port,
}

/// The store.
#[async_trait]
pub trait Store: Send + Sync {
    /// Enrol a node. Its version becomes 1.
    async fn create_node(&self, node: Node, events: Vec<Event>) -> Result<Node>;
    /// The node with this id.
    async fn node(&self, uuid: Uuid) -> Result<Node>;
    /// What a decision is made about, as it stood at one moment: the node, `None` if it still is at version
    /// `known`, and its contact.
    async fn look(&self, uuid: Uuid, known: Option<u64>) -> Result<(Option<Node>, Contact)>;
    /// The node with this UUID (any letter case) or name.
    async fn node_by_ident(&self, ident: &str) -> Result<Node>;
    /// All nodes, ordered by creation then UUID. Filtering and paging belong to the API.
    async fn nodes(&self) -> Result<Vec<Node>>;
    /// Write a node at the version it carries; it comes back one larger. With `lease`, only while that lease
    /// is the newest of the node. Rings the bell. Allocations that this ends ([`Resource::ends_with`]) go with it.
    async fn update_node(&self, node: Node, events: Vec<Event>, lease: Option<Lease>) -> Result<Node>;
    /// The same, with a certificate of that node, in one transaction. `Stale` too when another certificate has come
    /// in between: its number is not the next one.
    async fn certify(
        &self,
        node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        certificate: Certificate,
    ) -> Result<Node>;
    /// The same, with what an inspection changes beside the node, in one transaction: its inventory, in the place of an
    /// earlier one, at most [`inventory::MAX`] bytes; and ports of it. `Stale` too when one of them is no longer as it
    /// was read.
    async fn update_inspected(
        &self,
        node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        inspected: Inspected,
    ) -> Result<Node>;
    /// Certificates of a node, oldest first; also of one that is gone.
    async fn certificates(&self, node: Uuid) -> Result<Vec<Certificate>>;
    /// The newest of them.
    async fn newest_certificate(&self, node: Uuid) -> Result<Option<Certificate>>;
    /// The certificate with this digest.
    async fn certificate(&self, id: &str) -> Result<Certificate>;
    /// Remove a node at this version, with its ports, resources, contact, catalogue, inventory, history and bundles of
    /// its own. Its certificates stay.
    async fn delete_node(&self, uuid: Uuid, version: u64) -> Result<()>;
    /// History of a node, oldest first. The store has noted in each event how the node stood before the write
    /// that brought it (a new node: how it was enrolled).
    async fn history(&self, node: Uuid) -> Result<Vec<Event>>;

    /// Add a port.
    async fn create_port(&self, port: Port) -> Result<Port>;
    /// The port with this id.
    async fn port(&self, uuid: Uuid) -> Result<Port>;
    /// The port with this canonical MAC address.
    async fn port_by_address(&self, address: &str) -> Result<Port>;
    /// Ports of one node, or all, ordered by creation then UUID.
    async fn ports(&self, node: Option<Uuid>) -> Result<Vec<Port>>;
    /// Replace a port.
    async fn update_port(&self, port: Port) -> Result<Port>;
    /// Remove a port.
    async fn delete_port(&self, uuid: Uuid) -> Result<()>;

    /// Contact with the agent of a node; the empty one when there never was any.
    async fn contact(&self, node: Uuid) -> Result<Contact>;
    /// Give out `token` if none is out; otherwise note a rival. Atomic: of two agents at once one gets it.
    async fn grant_token(
        &self,
        node: Uuid,
        token: &str,
        boot_id: Option<&str>,
        at: Timestamp,
    ) -> Result<TokenGrant>;
    /// Store an accepted heartbeat, if `token` is still the one that is out (else `Stale`). Rings the bell.
    /// May be committed together with other beats, but is committed when this returns.
    async fn record_heartbeat(&self, node: Uuid, token: &str, beat: HeartbeatRecord) -> Result<()>;
    /// Forget the agent of a node (token, URL, certificate), because its boot is over.
    async fn forget_agent(&self, node: Uuid) -> Result<()>;

    /// The steps a node is known to offer.
    async fn catalogue(&self, node: Uuid, kind: StepKind) -> Result<Option<Catalogue>>;
    /// Keep them.
    async fn put_catalogue(&self, node: Uuid, kind: StepKind, catalogue: Catalogue) -> Result<()>;

    /// What the last inspection of a node found.
    async fn inventory(&self, node: Uuid) -> Result<Option<Inventory>>;
    /// Keep it, in the place of an earlier one; at most [`inventory::MAX`] bytes. Rings the bell.
    async fn put_inventory(&self, node: Uuid, inventory: Inventory) -> Result<()>;

    /// Add a deploy template. Its version becomes 1. Templates belong to no node and ring nothing.
    async fn create_template(&self, template: DeployTemplate) -> Result<DeployTemplate>;
    /// The template with this UUID (any letter case) or name.
    async fn template(&self, ident: &str) -> Result<DeployTemplate>;
    /// All templates, ordered by creation then UUID.
    async fn templates(&self) -> Result<Vec<DeployTemplate>>;
    /// Those of `names` that there are, ordered by name.
    async fn templates_named(&self, names: &[String]) -> Result<Vec<DeployTemplate>>;
    /// Write a template at the version it carries; it comes back one larger.
    async fn update_template(&self, template: DeployTemplate) -> Result<DeployTemplate>;
    /// Remove a template.
    async fn delete_template(&self, uuid: Uuid) -> Result<()>;

    /// Write a resource, and with it, in one transaction, a node at the version it carries (as `update_node` does,
    /// before the resource). What comes back is the resource as it is kept, or as it was when it was removed. Errors:
    /// `NotFound` of it or of its node, `Stale` with its UUID or the node's, `Duplicate` of `resource uuid`,
    /// `resource name` or `resource key`. It rings only for the node.
    async fn write_resource(
        &self,
        write: ResourceWrite,
        node: Option<(Node, Vec<Event>)>,
    ) -> Result<Resource>;
    /// The resource of a kind with this UUID (any letter case) or name.
    async fn resource(&self, kind: ResourceKind, ident: &str) -> Result<Resource>;
    /// Those of a kind, of one node or all, ordered by creation then UUID.
    async fn resources(&self, kind: ResourceKind, node: Option<Uuid>) -> Result<Vec<Resource>>;

    /// Keep a bundle, in the place of the one of its name in its scope, which comes back. `NotFound` when it is
    /// meant for a node that is not there. Bundles ring nothing: a node learns of them at its next boot.
    async fn put_bundle(&self, bundle: Bundle) -> Result<Option<Bundle>>;
    /// All bundles, ordered by name, then by scope from the widest.
    async fn bundles(&self) -> Result<Vec<Bundle>>;
    /// Take the bundle of this digest away from a scope, or from all; those that are gone, at least one.
    async fn delete_bundle(&self, digest: &str, scope: Option<&Scope>) -> Result<Vec<Bundle>>;

    /// Take the lease of a node for `holder` until `until`, if nobody holds an unexpired one at `now`
    /// (the holder itself may take it again; the epoch grows).
    async fn take_lease(
        &self,
        node: Uuid,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Lease>>;
    /// Extend a lease that is still the newest of its node; false if it is not.
    async fn renew_lease(&self, lease: Lease, until: Timestamp) -> Result<bool>;
    /// Give a lease back, if it is still the newest.
    async fn release_lease(&self, lease: Lease) -> Result<()>;
    /// Who holds an unexpired lease of the node at `now`.
    async fn lease_holder(&self, node: Uuid, now: Timestamp) -> Result<Option<String>>;
    /// Nodes whose `next_wake_at` is not later than `now`, earliest first, at most `limit`.
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Uuid>>;
    /// The earliest `next_wake_at` of all nodes that is later than `now`.
    async fn next_due(&self, now: Timestamp) -> Result<Option<Timestamp>>;

    /// The bell that rings for every changed node.
    fn bell(&self) -> &Bell;
}
