//! Inventories.

use super::contact::put;
use crate::change::{Change, rows};
use crate::database::Client;
use crate::document::{cell, decode};
use crate::failure::failed;
use model::Inventory;
use store::Result;
use uuid::Uuid;

pub async fn of_node(client: &Client, node: Uuid) -> Result<Option<Inventory>> {
    let found =
        rows(client, "SELECT doc FROM inventory WHERE node = $1", &[&node]).await.map(|mut rows| rows.pop());
    let row = found.map_err(failed(format_args!("reading the inventory of node {node}")))?;
    row.map(|row| decode("inventory", node, cell(&row, 0)?)).transpose()
}

/// The document of an inventory. The value is dropped before the document is read back, since both may be large.
pub fn document(node: Uuid, inventory: Inventory) -> Result<String> {
    store::inventory::check(node, &inventory)?;
    let text = serde_json::to_string(&inventory);
    let text = text.map_err(|error| store::StoreError::caused(format!("inventory of node {node}"), error))?;
    drop(inventory);
    decode::<Inventory>("inventory", node, &text)?;
    Ok(text)
}

/// Store a [`document`].
pub async fn write(change: &Change, node: Uuid, doc: &str) -> Result<()> {
    put(change, node, "inventory", doc).await
}

/// Move when the inventory of a node was received.
pub async fn shift_clock(change: &Change, node: Uuid, by: i64) -> Result<()> {
    let row = change.query_opt("SELECT doc FROM inventory WHERE node = $1 FOR UPDATE", &[&node]).await;
    let Some(row) = row.map_err(failed(format_args!("reading the inventory of node {node}")))? else {
        return Ok(());
    };
    let mut inventory: Inventory = decode("inventory", node, cell(&row, 0)?)?;
    model::clock_jump::shift_inventory(&mut inventory, by);
    write(change, node, &document(node, inventory)?).await
}
