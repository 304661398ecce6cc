//! Machines that no node is known for.

use crate::error::Result;
use async_trait::async_trait;
use model::boot::BootNonce;
use model::discovery::{DiscoveredMachine, DiscoveryLimits, NotBooted, UnknownBoot};
use model::{Event, Inventory, Node, Resource};
use uuid::Uuid;

/// The nonce of the boot that a machine gets.
pub type UnknownBootGrant = std::result::Result<BootNonce, NotBooted>;

/// What the write of a machine does to its node.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeChange {
    /// Nothing.
    None,
    /// It is made, with what was found of it.
    Create(Box<NewNode>),
    /// It is written at the version it carries.
    Update(Box<Node>),
    /// It is deleted at this version.
    Delete(Uuid, u64),
}

/// A node that is made of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct NewNode {
    /// The node.
    pub node: Node,
    /// Its inventory.
    pub inventory: Inventory,
    /// Its ports.
    pub ports: Vec<Resource>,
}

/// Machines that were booted although no node is known for them. All that is read or counted of a machine has the state that
/// its node gives it at that moment ([`DiscoveredMachine::with_node_in`]).
#[async_trait]
pub trait DiscoveryStore: Send + Sync {
    /// All of them, ordered by when they were booted, then by id.
    async fn discovered_machines(&self) -> Result<Vec<DiscoveredMachine>>;
    /// The machine with this id.
    async fn discovered_machine(&self, id: Uuid) -> Result<DiscoveredMachine>;
    /// The boot of an unknown MAC address, as [`model::discovery::machine_to_boot`] decides it of all machines; never of a MAC
    /// address that is a port's. Atomic: of many at once, no more than the limits allow get a nonce. Machines that are over are removed.
    async fn boot_unknown(&self, boot: UnknownBoot, limits: DiscoveryLimits) -> Result<UnknownBootGrant>;
    /// Write a machine at the version it carries; it comes back one larger. In the same transaction its node is changed, and gets these
    /// events. Rings the bell for that node.
    ///
    /// # Errors
    /// `NotFound` of the machine or the node, `Stale` with the id of the machine or the node, `TooLarge` of the inventory,
    /// `Duplicate` of the node's name, or, when a node is made, of a MAC address of the machine that is a port's.
    async fn write_discovered(
        &self,
        machine: DiscoveredMachine,
        change: NodeChange,
        events: Vec<Event>,
    ) -> Result<DiscoveredMachine>;
    /// Delete a machine at this version. Its node stays.
    async fn forget_discovered(&self, id: Uuid, version: u64) -> Result<()>;
}
