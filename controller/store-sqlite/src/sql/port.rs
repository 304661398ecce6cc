//! Ports.

use super::node_version;
use crate::document::{encode, failed, select};
use model::Port;
use rusqlite::{Connection, params};
use store::{Noun, Result, StoreError, Unique};
use uuid::Uuid;

pub fn insert(connection: &Connection, port: &Port) -> Result<()> {
    if by_uuid(connection, port.uuid)?.is_some() {
        return Err(StoreError::duplicate(Unique::PortUuid, port.uuid));
    }
    check_sound(connection, port)?;
    write(connection, "INSERT INTO port (uuid, doc) VALUES (?1, ?2)", port)
}

/// The port that was replaced.
pub fn update(connection: &Connection, port: &Port) -> Result<Port> {
    let old = by_uuid(connection, port.uuid)?.ok_or_else(|| StoreError::not_found(Noun::Port, port.uuid))?;
    check_sound(connection, port)?;
    write(connection, "UPDATE port SET doc = ?2 WHERE uuid = ?1", port)?;
    Ok(old)
}

/// The port that is gone.
pub fn delete(connection: &Connection, uuid: Uuid) -> Result<Port> {
    let old = by_uuid(connection, uuid)?.ok_or_else(|| StoreError::not_found(Noun::Port, uuid))?;
    connection
        .prepare_cached("DELETE FROM port WHERE uuid = ?1")
        .and_then(|mut statement| statement.execute([uuid.to_string()]))
        .map_err(failed(format_args!("deleting port {uuid}")))?;
    Ok(old)
}

pub fn by_uuid(connection: &Connection, uuid: Uuid) -> Result<Option<Port>> {
    let sql = "SELECT uuid, doc FROM port WHERE uuid = ?1";
    Ok(select(connection, "port", sql, [uuid.to_string()])?.pop())
}

pub fn by_address(connection: &Connection, address: &str) -> Result<Option<Port>> {
    Ok(select(connection, "port", "SELECT uuid, doc FROM port WHERE address = ?1", [address])?.pop())
}

pub fn all(connection: &Connection) -> Result<Vec<Port>> {
    select(connection, "port", "SELECT uuid, doc FROM port ORDER BY created_at, uuid", [])
}

pub fn of_node(connection: &Connection, node: Uuid) -> Result<Vec<Port>> {
    let sql = "SELECT uuid, doc FROM port WHERE node = ?1 ORDER BY created_at, uuid";
    select(connection, "port", sql, [node.to_string()])
}

/// Refuses a port of an unknown node, or with the address of another port.
fn check_sound(connection: &Connection, port: &Port) -> Result<()> {
    node_version::check_exists(connection, port.node_uuid)?;
    let taken = connection
        .prepare_cached("SELECT 1 FROM port WHERE address = ?1 AND uuid <> ?2")
        .and_then(|mut statement| statement.exists([&port.address, &port.uuid.to_string()]))
        .map_err(failed("looking for another port of this address"))?;
    if taken { Err(StoreError::duplicate(Unique::PortAddress, &port.address)) } else { Ok(()) }
}

fn write(connection: &Connection, sql: &str, port: &Port) -> Result<()> {
    let (uuid, doc) = (port.uuid.to_string(), encode("port", port.uuid, port)?);
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![uuid, doc]))
        .map_err(failed(format_args!("writing port {uuid}")))?;
    Ok(())
}
