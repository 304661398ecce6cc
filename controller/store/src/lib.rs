//! What the controller stores, behind six traits by user: [`NodeStore`], [`AgentStore`], [`ResourceStore`], [`EventStore`],
//! [`DiscoveryStore`] and [`ConductorStore`].
//!
//! Rules of every implementation (tested by the crate `store-conformance`):
//! - A node is written only at the version it was read at; a stale write changes nothing
//!   ([`StoreError::Stale`]). Its events are stored in its history and in the log of all nodes in the same transaction or not at all.
//! - A node becomes AVAILABLE only with a basis ([`basis::check`]).
//! - Contact with agents is stored apart from node rows and never makes a node write stale.
//! - An acknowledged write survives `kill -9`.
//! - No transaction outlives a call, so none is ever held across a network call.
//! - Writing to a node that does not exist is [`StoreError::NotFound`] (renewing or releasing its lease is
//!   not: such a lease is merely lost). Reading what belongs to it (contact, catalogue, inventory, history,
//!   resources, lease holder) finds nothing.
//!
//! The API and the conductor meet only here: a committed change of a node, its ports, its contact, its
//! catalogue or its inventory rings the [`Bell`] for it. Leases do not ring it; otherwise taking one would
//! start another pass.

mod agents;
pub mod basis;
pub mod bell;
pub mod certificate_log;
pub mod clock;
mod conductor;
pub mod contact;
mod discovery;
mod error;
mod event_cursor;
mod event_log;
mod event_page;
mod events;
#[cfg(debug_assertions)]
pub mod fault_plan;
pub mod hello;
pub mod history_limits;
pub mod inventory;
mod lease;
mod members;
pub mod memory;
mod node_field;
pub mod node_filter;
mod node_query;
mod nodes;
mod place;
mod remarks;
mod resource_field;
mod resource_query;
mod resources;

pub use agents::{
    AgentStore, FetchSource, HeartbeatRecord, ScriptFetch, ScriptGrant, TokenGrant, TokenRequest,
};
pub use bell::Bell;
pub use clock::{Clock, SystemClock};
pub use conductor::{ConductorStore, Inspected};
pub use discovery::{DiscoveryStore, NewNode, NodeChange, UnknownBootGrant};
pub use error::{Cause, Noun, Result, StoreError, Unique};
pub use event_cursor::EventCursor;
pub use event_log::log_events;
pub use event_page::{EventPage, EventRange, KeptEvents};
pub use events::EventStore;
pub use lease::Lease;
pub use members::Members;
pub use model::StepKind;
pub use node_field::{FieldValue, NodeField};
pub use node_filter::NodeFilter;
pub use node_query::{NodePage, NodeQuery};
pub use nodes::NodeStore;
pub use place::Place;
pub use remarks::Remarks;
pub use resource_field::ResourceField;
pub use resource_query::{Ownership, ResourceFilter, ResourcePage, ResourceQuery};
pub use resources::{ResourceStore, ResourceWrite};

/// What the API uses: everything but leases and the conductor's writes.
pub trait ApiStore: NodeStore + AgentStore + ResourceStore + EventStore + DiscoveryStore {}

impl<S: NodeStore + AgentStore + ResourceStore + EventStore + DiscoveryStore> ApiStore for S {}

/// The whole store.
pub trait Store: ApiStore + ConductorStore {}

impl<S: ApiStore + ConductorStore> Store for S {}

/// The traits, for callers of a concrete store.
pub mod prelude {
    pub use crate::{
        AgentStore, ApiStore, ConductorStore, DiscoveryStore, EventStore, NodeStore, ResourceStore, Store,
    };
}
