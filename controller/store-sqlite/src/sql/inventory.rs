//! Inventories.

use super::node_version;
use crate::document::{decode, failed, select};
use crate::writer::Change;
use model::Inventory;
use rusqlite::{Connection, params};
use store::Result;
use uuid::Uuid;

pub fn of_node(connection: &Connection, node: Uuid) -> Result<Option<Inventory>> {
    let sql = "SELECT node, doc FROM inventory WHERE node = ?1";
    Ok(select(connection, "inventory", sql, [node.to_string()])?.pop())
}

/// The document of an inventory. The value is dropped before the document is read back, since both may be large.
pub fn document(node: Uuid, inventory: Inventory) -> Result<String> {
    store::inventory::check(node, &inventory)?;
    let text = serde_json::to_string(&inventory).map_err(failed(format_args!("inventory of node {node}")))?;
    drop(inventory);
    decode::<Inventory>("inventory", node, text.as_bytes())?;
    Ok(text)
}

/// Store a [`document`].
pub fn put(change: &Change<'_>, node: Uuid, doc: &str) -> Result<()> {
    node_version::check_exists(change, node)?;
    let sql = "INSERT INTO inventory (node, doc) VALUES (?1, ?2)
               ON CONFLICT (node) DO UPDATE SET doc = excluded.doc";
    change
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![node.to_string(), doc]))
        .map_err(failed(format_args!("writing the inventory of node {node}")))?;
    Ok(())
}

/// Move when the inventory of a node was received.
pub fn shift_clock(connection: &Connection, node: Uuid, by: i64) -> Result<()> {
    let sql =
        "UPDATE inventory SET doc = json_set(doc, '$.at', json_extract(doc, '$.at') + ?2) WHERE node = ?1";
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![node.to_string(), by]))
        .map_err(failed(format_args!("moving the inventory of node {node}")))?;
    Ok(())
}
