//! Machines that no node is known for.

use crate::PostgresStore;
use crate::sql::discovery::{self, Prepared};
use crate::sql::inventory;
use crate::sql::node::NodeRow;
use async_trait::async_trait;
use model::discovery::{DiscoveredMachine, DiscoveryLimits, UnknownBoot};
use model::{Event, Node};
use store::{DiscoveryStore, NewNode, NodeChange, Result, StoreError, UnknownBootGrant};
use uuid::Uuid;

impl PostgresStore {
    /// The documents are made before the transaction, which then is short.
    fn prepared(&self, change: NodeChange) -> Result<Prepared> {
        Ok(match change {
            NodeChange::None => Prepared::None,
            NodeChange::Create(new) => {
                let NewNode { node, inventory, ports } = *new;
                let inventory = inventory::document(node.uuid, inventory)?;
                let row = NodeRow::of(&self.key, Node { version: 1, ..node })?;
                Prepared::Create(Box::new((row, inventory, ports)))
            }
            NodeChange::Update(node) => Prepared::Update(Box::new(NodeRow::next(&self.key, *node)?)),
            NodeChange::Delete(uuid, version) => Prepared::Delete(uuid, version),
        })
    }
}

#[async_trait]
impl DiscoveryStore for PostgresStore {
    async fn discovered_machines(&self) -> Result<Vec<DiscoveredMachine>> {
        self.database.read(|client, _| Box::pin(discovery::all(client))).await
    }

    async fn discovered_machine(&self, id: Uuid) -> Result<DiscoveredMachine> {
        self.database.read(|client, _| Box::pin(discovery::by_id(client, id))).await
    }

    async fn boot_unknown(&self, boot: UnknownBoot, limits: DiscoveryLimits) -> Result<UnknownBootGrant> {
        let (boot, limits) = (&boot, &limits);
        self.database.write(|change, _| Box::pin(discovery::boot(change, boot, limits))).await
    }

    async fn write_discovered(
        &self,
        mut machine: DiscoveredMachine,
        change: NodeChange,
        events: Vec<Event>,
    ) -> Result<DiscoveredMachine> {
        machine.version = machine.version.checked_add(1).ok_or(StoreError::Stale(machine.id))?;
        let prepared = self.prepared(change)?;
        let (key, of, of_node, events) = (&self.key, &machine, &prepared, &events);
        let write =
            self.database.write(|change, _| Box::pin(discovery::write(change, key, of, of_node, events)));
        write.await?;
        Ok(machine)
    }

    async fn forget_discovered(&self, id: Uuid, version: u64) -> Result<()> {
        self.database.write(|change, _| Box::pin(discovery::forget(change, id, version))).await
    }
}
