//! Erasure certificates. They are added and read, and never changed or taken away.

use super::certificate_log;
use crate::document::{encode, failed, select};
use model::Certificate;
use rusqlite::{Connection, params};
use store::{Noun, Result, StoreError};
use uuid::Uuid;

const TABLE: &str = "certificate";

/// Add the next certificate of its node.
pub fn insert(connection: &Connection, node: Uuid, certificate: &Certificate) -> Result<()> {
    let last = newest(connection, node)?.map_or(0, |newest| newest.number);
    if certificate.node != node || last.checked_add(1) != Some(certificate.number) {
        return Err(StoreError::Stale(node));
    }
    let doc = encode(TABLE, &certificate.id, certificate)?;
    connection
        .prepare_cached("INSERT INTO certificate (id, doc) VALUES (?1, ?2)")
        .and_then(|mut statement| statement.execute(params![certificate.id, doc]))
        .map_err(failed(format_args!("writing certificate {}", certificate.id)))?;
    certificate_log::append(connection, certificate)
}

pub fn of_node(connection: &Connection, node: Uuid) -> Result<Vec<Certificate>> {
    let sql = "SELECT id, doc FROM certificate WHERE node = ?1 ORDER BY number";
    select(connection, TABLE, sql, [node.to_string()])
}

pub fn newest(connection: &Connection, node: Uuid) -> Result<Option<Certificate>> {
    let sql = "SELECT id, doc FROM certificate WHERE node = ?1 ORDER BY number DESC LIMIT 1";
    Ok(select(connection, TABLE, sql, [node.to_string()])?.pop())
}

pub fn by_id(connection: &Connection, id: &str) -> Result<Certificate> {
    let found = select(connection, TABLE, "SELECT id, doc FROM certificate WHERE id = ?1", [id])?.pop();
    found.ok_or_else(|| StoreError::not_found(Noun::Certificate, id))
}

/// Add the lines of the certificates that were stored before there was a log of them.
pub fn complete_log(connection: &Connection) -> Result<()> {
    let missing: Vec<String> = connection
        .prepare_cached(
            "SELECT id FROM certificate WHERE id NOT IN (SELECT certificate FROM certificate_log) ORDER BY rowid",
        )
        .and_then(|mut statement| statement.query_map([], |row| row.get(0))?.collect())
        .map_err(failed("reading the certificates that are in no log"))?;
    missing.iter().try_for_each(|id| certificate_log::append(connection, &by_id(connection, id)?))
}
