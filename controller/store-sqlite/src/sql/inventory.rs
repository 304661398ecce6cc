//! Inventories.

use super::node_version;
use crate::document::{encode, failed, select};
use model::Inventory;
use rusqlite::{Connection, params};
use store::Result;
use uuid::Uuid;

pub fn of_node(connection: &Connection, node: Uuid) -> Result<Option<Inventory>> {
    let sql = "SELECT node, doc FROM inventory WHERE node = ?1";
    Ok(select(connection, "inventory", sql, [node.to_string()])?.pop())
}

pub fn put(connection: &Connection, node: Uuid, inventory: &Inventory) -> Result<()> {
    store::inventory::check(node, inventory)?;
    node_version::check_exists(connection, node)?;
    let doc = encode("inventory", node, inventory)?;
    let sql = "INSERT INTO inventory (node, doc) VALUES (?1, ?2)
               ON CONFLICT (node) DO UPDATE SET doc = excluded.doc";
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![node.to_string(), doc]))
        .map_err(failed(format_args!("writing the inventory of node {node}")))?;
    Ok(())
}
