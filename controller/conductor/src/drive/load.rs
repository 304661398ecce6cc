//! What a decision about a node looks at.

use super::conductor::Conductor;
use crate::decision::{Rules, Snapshot};
use model::{Cursor, Inventory, Node, ResourceKind, StepKind};
use store::{Noun, StoreError};
use uuid::Uuid;

impl Conductor {
    /// The snapshot of a node, `known` being the node as it was last read.
    pub(super) async fn load(&self, uuid: Uuid, known: Option<Node>) -> Result<Snapshot, StoreError> {
        let (newer, contact) = self.store.look(uuid, known.as_ref().map(|node| node.version)).await?;
        let node = newer.or(known).ok_or_else(|| StoreError::not_found(Noun::Node, uuid))?;
        let inventory = if needs_inventory(&node) { self.store.inventory(uuid).await? } else { None };
        let catalogue = match needs_catalogue(&node) {
            Some(kind) => self.store.catalogue(uuid, kind).await?,
            None => None,
        };
        let rules = match needs_rules(&node, inventory.as_ref()) {
            true => self.rules(uuid).await?,
            false => Rules::default(),
        };
        let abilities = self.executor.abilities(&node);
        let (listening_since, now) = (self.listening_since(), self.clock.now());
        Ok(Snapshot { node, contact, abilities, catalogue, inventory, rules, listening_since, now })
    }

    /// The inspection rules, and the ports of a node that is inspected.
    async fn rules(&self, node: Uuid) -> Result<Rules, StoreError> {
        let rules = self.store.resources(ResourceKind::InspectionRule, None).await?;
        let ports = self.store.resources(ResourceKind::Port, Some(node)).await?;
        Ok(Rules { rules, ports, drivers: self.members.drivers().to_vec() })
    }
}

/// The kind of steps whose catalogue a decision about this node looks at.
pub(super) fn needs_catalogue(node: &Node) -> Option<StepKind> {
    let run = node.run.as_ref()?;
    if run.cursor == Cursor::Start { run.kind.steps() } else { None }
}

/// Whether a decision about this node looks at its inventory.
pub(super) fn needs_inventory(node: &Node) -> bool {
    node.run.as_ref().is_some_and(|run| run.cursor == Cursor::AwaitInventory)
}

/// Whether a decision about this node, or the outcome of its action, applies inspection rules.
fn needs_rules(node: &Node, inventory: Option<&Inventory>) -> bool {
    let cursor = node.run.as_ref().map(|run| &run.cursor);
    inventory.is_some() || cursor == Some(&Cursor::AskInventory)
}
