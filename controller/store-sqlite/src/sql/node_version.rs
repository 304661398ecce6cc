//! Whether a node is stored, and its version.

use crate::document::failed;
use crate::writer::Change;
use model::Node;
use rusqlite::{Connection, OptionalExtension};
use std::sync::Arc;
use store::{Noun, Result, StoreError};
use uuid::Uuid;

/// Reject a write that belongs to a node that is not stored.
pub fn check_exists(change: &Change<'_>, node: Uuid) -> Result<()> {
    if change.known::<Arc<Node>>(node).is_some() {
        return Ok(());
    }
    version(change, node)?.map(drop).ok_or_else(|| StoreError::not_found(Noun::Node, node))
}

/// The version of a stored node, without reading its document.
pub fn version(connection: &Connection, node: Uuid) -> Result<Option<u64>> {
    let version: Option<i64> = connection
        .prepare_cached("SELECT version FROM node WHERE uuid = ?1")
        .and_then(|mut statement| statement.query_row([node.to_string()], |row| row.get(0)).optional())
        .map_err(failed(format_args!("reading node {node}")))?;
    Ok(version.map(i64::cast_unsigned))
}
