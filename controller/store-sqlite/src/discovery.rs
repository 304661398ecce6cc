//! Machines that no node is known for.

use crate::SqliteStore;
use crate::sql::{discovery, inventory, node, resource};
use crate::writer::Change;
use async_trait::async_trait;
use model::discovery::{DiscoveredMachine, DiscoveryLimits, UnknownBoot};
use model::{Event, Resource};
use store::{DiscoveryStore, NewNode, NodeChange, ResourceWrite, Result, StoreError, UnknownBootGrant};
use uuid::Uuid;

/// A [`NodeChange`] with its documents, which are made before the writer has a turn.
#[derive(Clone)]
enum Prepared {
    None,
    Create(Box<(Uuid, node::Document, String, Vec<Resource>)>),
    Update(Uuid, Box<node::Document>),
    Delete(Uuid, u64),
}

impl Prepared {
    fn of(change: NodeChange) -> Result<Self> {
        Ok(match change {
            NodeChange::None => Self::None,
            NodeChange::Create(new) => {
                let NewNode { mut node, inventory, ports } = *new;
                node.version = 1;
                let inventory = inventory::document(node.uuid, inventory)?;
                Self::Create(Box::new((node.uuid, node::Document::of(&node)?, inventory, ports)))
            }
            NodeChange::Update(mut node) => {
                node.version = node.version.checked_add(1).ok_or(StoreError::Stale(node.uuid))?;
                Self::Update(node.uuid, Box::new(node::Document::of(&node)?))
            }
            NodeChange::Delete(uuid, version) => Self::Delete(uuid, version),
        })
    }

    fn write(self, change: &mut Change<'_>, machine: &DiscoveredMachine, events: &[Event]) -> Result<()> {
        let uuid = match self {
            Self::None => return Ok(()),
            Self::Create(new) => {
                let (uuid, doc, inventory, ports) = *new;
                discovery::check_unknown(change, machine)?;
                node::insert(change, &doc, events)?;
                inventory::put(change, uuid, &inventory)?;
                for port in ports {
                    resource::write(change, ResourceWrite::Create(port))?;
                }
                uuid
            }
            Self::Update(uuid, doc) => {
                node::update(change, &doc, events, None)?;
                uuid
            }
            Self::Delete(uuid, version) => {
                node::delete(change, uuid, version, events)?;
                uuid
            }
        };
        change.ring(uuid);
        Ok(())
    }
}

#[async_trait]
impl DiscoveryStore for SqliteStore {
    async fn discovered_machines(&self) -> Result<Vec<DiscoveredMachine>> {
        self.readers.read(discovery::all).await
    }

    async fn discovered_machine(&self, id: Uuid) -> Result<DiscoveredMachine> {
        self.readers.read(move |connection| discovery::by_id(connection, id)).await
    }

    async fn boot_unknown(&self, boot: UnknownBoot, limits: DiscoveryLimits) -> Result<UnknownBootGrant> {
        self.writer.write(move |change| discovery::boot(change, &boot, &limits)).await
    }

    async fn write_discovered(
        &self,
        mut machine: DiscoveredMachine,
        change: NodeChange,
        events: Vec<Event>,
    ) -> Result<DiscoveredMachine> {
        let (read_at, prepared) = (machine.version, Prepared::of(change)?);
        machine.version = read_at.checked_add(1).ok_or(StoreError::Stale(machine.id))?;
        let (written, deletes) = (machine.clone(), matches!(prepared, Prepared::Delete(..)));
        let work = move |change: &mut Change<'_>| {
            discovery::check_version(change, machine.id, read_at)?;
            prepared.write(change, &machine, &events)?;
            discovery::put(change, &machine)
        };
        if deletes {
            self.delete(work).await?
        } else {
            self.writer.write(work).await?
        }
        Ok(written)
    }

    async fn forget_discovered(&self, id: Uuid, version: u64) -> Result<()> {
        let forget = move |change: &mut Change<'_>| {
            discovery::check_version(change, id, version)?;
            discovery::remove(change, id)
        };
        self.delete(forget).await
    }
}
