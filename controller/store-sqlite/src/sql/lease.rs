//! Leases. The newest of a node is its only row; giving it back removes the row, and AUTOINCREMENT makes the
//! next one newer than any before.

use super::node_version;
use crate::document::failed;
use model::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use store::{Lease, Result};
use uuid::Uuid;

pub fn take(
    connection: &Connection,
    node: Uuid,
    holder: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<Lease>> {
    node_version::check_exists(connection, node)?;
    if self::holder(connection, node, now)?.is_some_and(|other| other != holder) {
        return Ok(None);
    }
    let taken = || -> rusqlite::Result<i64> {
        connection.prepare_cached("DELETE FROM lease WHERE node = ?1")?.execute([node.to_string()])?;
        connection
            .prepare_cached("INSERT INTO lease (node, holder, until) VALUES (?1, ?2, ?3)")?
            .insert(params![node.to_string(), holder, until.0])
    };
    let epoch = taken().map_err(failed(format_args!("taking the lease of node {node}")))?;
    Ok(Some(Lease { node, epoch: epoch.cast_unsigned() }))
}

pub fn renew(connection: &Connection, lease: Lease, until: Timestamp) -> Result<bool> {
    connection
        .prepare_cached("UPDATE lease SET until = ?3 WHERE epoch = ?1 AND node = ?2")
        .and_then(|mut statement| {
            statement.execute(params![lease.epoch.cast_signed(), lease.node.to_string(), until.0])
        })
        .map(|changed| changed > 0)
        .map_err(failed(format_args!("renewing the lease of node {}", lease.node)))
}

pub fn release(connection: &Connection, lease: Lease) -> Result<()> {
    connection
        .prepare_cached("DELETE FROM lease WHERE epoch = ?1 AND node = ?2")
        .and_then(|mut statement| {
            statement.execute(params![lease.epoch.cast_signed(), lease.node.to_string()])
        })
        .map_err(failed(format_args!("giving back the lease of node {}", lease.node)))?;
    Ok(())
}

pub fn is_newest(connection: &Connection, lease: Lease) -> Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM lease WHERE epoch = ?1 AND node = ?2")
        .and_then(|mut statement| {
            statement.exists(params![lease.epoch.cast_signed(), lease.node.to_string()])
        })
        .map_err(failed(format_args!("reading the lease of node {}", lease.node)))
}

pub fn holder(connection: &Connection, node: Uuid, now: Timestamp) -> Result<Option<String>> {
    connection
        .prepare_cached("SELECT holder FROM lease WHERE node = ?1 AND until > ?2")
        .and_then(|mut statement| {
            statement.query_row(params![node.to_string(), now.0], |row| row.get(0)).optional()
        })
        .map_err(failed(format_args!("reading the lease of node {node}")))
}

/// The largest epoch that was given, also to a node that is gone.
pub fn last_epoch(connection: &Connection) -> Result<u64> {
    let last: Option<i64> = connection
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'lease'")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)).optional())
        .map_err(failed("reading the last epoch of leases"))?;
    Ok(last.unwrap_or_default().cast_unsigned())
}

/// Move the ends of all leases.
pub fn shift_clock(connection: &Connection, by: i64) -> Result<()> {
    let moved = connection.execute("UPDATE lease SET until = until + ?1", [by]);
    moved.map(drop).map_err(failed("moving the ends of leases"))
}
