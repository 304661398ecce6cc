//! Leases. The newest of a node is its only row; giving it back removes the row, and AUTOINCREMENT makes the
//! next one newer than any before.

use super::node_version;
use crate::document::failed;
use crate::node_cache::Reading;
use crate::writer::Change;
use crate::written::{LeaseState, Written};
use model::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use store::{Lease, Result, StoreError};
use uuid::Uuid;

pub fn take(
    change: &mut Change<'_>,
    node: Uuid,
    holder: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<Lease>> {
    node_version::check_exists(change, node)?;
    let before = match change.known(node) {
        Some(known) => known,
        None => of_node(change, node)?,
    };
    if before.holder(now).is_some_and(|other| other != holder) {
        return Ok(None);
    }
    let taken =
        || -> rusqlite::Result<i64> {
            change.prepare_cached("DELETE FROM lease WHERE node = ?1")?.execute([node.to_string()])?;
            change
                .prepare_cached("INSERT INTO lease (node, holder, until) VALUES (?1, ?2, ?3)")?
                .insert(params![node.to_string(), holder, until.0])
        };
    let epoch = taken().map_err(failed(format_args!("taking the lease of node {node}")))?;
    change.note(Written::Lease(node, LeaseState(Some((holder.into(), until)))));
    Ok(Some(Lease { node, epoch: epoch.cast_unsigned() }))
}

pub fn renew(change: &mut Change<'_>, lease: Lease, until: Timestamp) -> Result<bool> {
    let renewed = change
        .prepare_cached("UPDATE lease SET until = ?3 WHERE epoch = ?1 AND node = ?2")
        .and_then(|mut statement| {
            statement.execute(params![lease.epoch.cast_signed(), lease.node.to_string(), until.0])
        })
        .map(|changed| changed > 0)
        .map_err(failed(format_args!("renewing the lease of node {}", lease.node)))?;
    let state = of_node(change, lease.node)?;
    change.note(Written::Lease(lease.node, state));
    Ok(renewed)
}

pub fn release(change: &mut Change<'_>, lease: Lease) -> Result<()> {
    let released = change
        .prepare_cached("DELETE FROM lease WHERE epoch = ?1 AND node = ?2")
        .and_then(|mut statement| {
            statement.execute(params![lease.epoch.cast_signed(), lease.node.to_string()])
        })
        .map_err(failed(format_args!("giving back the lease of node {}", lease.node)))?;
    if released > 0 {
        change.note(Written::Lease(lease.node, LeaseState(None)));
    }
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

/// Refuses a write under a lease of this node that is not the newest.
pub fn check(connection: &Connection, node: Uuid, lease: Option<Lease>) -> Result<()> {
    match lease {
        Some(lease) if lease.node != node || !is_newest(connection, lease)? => Err(StoreError::Stale(node)),
        _ => Ok(()),
    }
}

/// The lease of a node.
fn of_node(connection: &Connection, node: Uuid) -> Result<LeaseState> {
    let found = connection
        .prepare_cached("SELECT holder, until FROM lease WHERE node = ?1")
        .and_then(|mut statement| {
            let read =
                |row: &rusqlite::Row<'_>| Ok((row.get_ref(0)?.as_str()?.into(), Timestamp(row.get(1)?)));
            statement.query_row([node.to_string()], read).optional()
        })
        .map_err(failed(format_args!("reading the lease of node {node}")))?;
    Ok(LeaseState(found))
}

/// The lease of a node as a snapshot has it, which goes into the cache.
pub fn read(connection: &Connection, reading: &Reading, node: Uuid) -> Result<LeaseState> {
    let state = of_node(connection, node)?;
    reading.keep(node, state.clone(), 0);
    Ok(state)
}

/// Nodes that have a lease of this holder.
pub fn held_by(connection: &Connection, holder: &str) -> Result<Vec<Uuid>> {
    let held: Vec<String> = connection
        .prepare_cached("SELECT node FROM lease WHERE holder = ?1")
        .and_then(|mut statement| statement.query_map([holder], |row| row.get(0))?.collect())
        .map_err(failed(format_args!("reading the leases of {holder}")))?;
    held.iter().map(|node| Uuid::parse_str(node).map_err(failed(format_args!("node {node}")))).collect()
}

/// The largest epoch that was given, also to a node that is gone.
pub fn last_epoch(connection: &Connection) -> Result<u64> {
    let last: Option<i64> = connection
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'lease'")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)).optional())
        .map_err(failed("reading the last epoch of leases"))?;
    Ok(last.unwrap_or_default().cast_unsigned())
}

/// Give no epoch up to this one any more.
pub fn raise_epochs(change: &Change<'_>, to: u64) -> Result<()> {
    let doing = failed("setting the next epoch of leases");
    let raised = || -> rusqlite::Result<usize> {
        let of_lease = "WHERE name = 'lease'";
        let to = to.cast_signed();
        match change.execute(&format!("UPDATE sqlite_sequence SET seq = max(seq, ?1) {of_lease}"), [to])? {
            0 => change.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('lease', ?1)", [to]),
            updated => Ok(updated),
        }
    };
    raised().map(drop).map_err(doing)
}

/// Move the ends of all leases.
pub fn shift_clock(change: &Change<'_>, by: i64) -> Result<()> {
    let moved = change.execute("UPDATE lease SET until = until + ?1", [by]);
    moved.map(drop).map_err(failed("moving the ends of leases"))
}
