//! Machines that no node is known for.

use super::MemoryStore;
use super::state::State;
use crate::discovery::{DiscoveryStore, NewNode, NodeChange, UnknownBootGrant};
use crate::error::{Noun, Result, StoreError, Unique};
use crate::inventory;
use crate::resources::ResourceWrite;
use async_trait::async_trait;
use model::discovery::{DiscoveredMachine, DiscoveryLimits, UnknownBoot, machine_to_boot};
use model::{Event, ResourceKind};
use uuid::Uuid;

impl State {
    /// The machine, if it is still at this version.
    fn machine(&self, id: Uuid, version: u64) -> Result<&DiscoveredMachine> {
        let stored = self.machines.get(&id);
        let stored = stored.ok_or_else(|| StoreError::not_found(Noun::DiscoveredMachine, id))?;
        if stored.version == version { Ok(stored) } else { Err(StoreError::Stale(id)) }
    }

    /// A machine as it stands with its node.
    fn with_node(&self, machine: &DiscoveredMachine) -> DiscoveredMachine {
        let node = machine.node.and_then(|node| self.nodes.get(&node));
        machine.clone().with_node_in(node.map(|row| row.node.provision_state))
    }

    /// What becomes of the node; whom the bell rings for.
    fn change_node(
        &mut self,
        machine: &DiscoveredMachine,
        change: NodeChange,
        events: Vec<Event>,
    ) -> Result<Option<Uuid>> {
        match change {
            NodeChange::None => Ok(None),
            NodeChange::Create(new) => {
                let NewNode { mut node, inventory, ports } = *new;
                inventory::check(node.uuid, &inventory)?;
                let mut macs = machine.macs.iter().map(ToString::to_string);
                if let Some(known) = macs.find(|mac| self.by_key(ResourceKind::Port, mac).is_some()) {
                    return Err(StoreError::duplicate(Unique::ResourceKey, known));
                }
                self.insert(&mut node, &events)?;
                self.row(node.uuid)?.inventory = Some(inventory);
                for port in ports {
                    self.write_resource(ResourceWrite::Create(port))?;
                }
                Ok(Some(node.uuid))
            }
            NodeChange::Update(mut node) => {
                self.update(&mut node, events, None)?;
                Ok(Some(node.uuid))
            }
            NodeChange::Delete(uuid, version) => {
                self.delete(uuid, version, &events)?;
                Ok(Some(uuid))
            }
        }
    }
}

#[async_trait]
impl DiscoveryStore for MemoryStore {
    async fn discovered_machines(&self) -> Result<Vec<DiscoveredMachine>> {
        let state = self.state();
        let mut machines: Vec<_> = state.machines.values().map(|machine| state.with_node(machine)).collect();
        machines.sort_by_key(|machine| (machine.booted_at, machine.id));
        Ok(machines)
    }

    async fn discovered_machine(&self, id: Uuid) -> Result<DiscoveredMachine> {
        let state = self.state();
        let found = state.machines.get(&id).map(|machine| state.with_node(machine));
        found.ok_or_else(|| StoreError::not_found(Noun::DiscoveredMachine, id))
    }

    async fn boot_unknown(&self, boot: UnknownBoot, limits: DiscoveryLimits) -> Result<UnknownBootGrant> {
        let mut state = self.state();
        if state.by_key(ResourceKind::Port, &boot.mac.to_string()).is_some() {
            return Ok(Err(model::discovery::NotBooted::Known));
        }
        state.machines.retain(|_, machine| !machine.is_over(boot.at));
        let known: Vec<_> = state.machines.values().map(|machine| state.with_node(machine)).collect();
        Ok(machine_to_boot(&known, &boot, &limits).map(|machine| {
            let nonce = machine.nonce.clone();
            state.machines.insert(machine.id, machine);
            nonce
        }))
    }

    async fn write_discovered(
        &self,
        mut machine: DiscoveredMachine,
        change: NodeChange,
        events: Vec<Event>,
    ) -> Result<DiscoveredMachine> {
        let mut state = self.state();
        state.machine(machine.id, machine.version)?;
        // All of it or nothing.
        let mut after = state.clone();
        let ring = after.change_node(&machine, change, events)?;
        machine.version += 1;
        after.machines.insert(machine.id, machine.clone());
        *state = after;
        drop(state);
        ring.into_iter().for_each(|node| self.bell.ring(node));
        Ok(machine)
    }

    async fn forget_discovered(&self, id: Uuid, version: u64) -> Result<()> {
        let mut state = self.state();
        state.machine(id, version)?;
        state.machines.remove(&id);
        Ok(())
    }
}
