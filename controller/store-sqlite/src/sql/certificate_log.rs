//! The log of the heads of all chains of certificates, and the changes of the key that signs them. Lines are added and read.

use crate::document::failed;
use model::Certificate;
use rusqlite::{Connection, OptionalExtension, params};
use store::{Result, StoreError};

/// Add the line of a certificate that is stored.
pub fn append(connection: &Connection, certificate: &Certificate) -> Result<()> {
    let last = connection
        .prepare_cached("SELECT line FROM certificate_log ORDER BY seq DESC LIMIT 1")
        .and_then(|mut statement| statement.query_row([], |row| row.get::<_, String>(0)).optional())
        .map_err(failed("reading the log of certificates"))?;
    let line = store::certificate_log::line_after(last.as_deref(), certificate)?;
    connection
        .prepare_cached("INSERT INTO certificate_log (seq, line) VALUES (json_extract(?1, '$.index'), ?1)")
        .and_then(|mut statement| statement.execute([line]))
        .map_err(failed(format_args!("adding certificate {} to the log", certificate.id)))?;
    Ok(())
}

/// Lines from that index on, at most so many.
pub fn lines(connection: &Connection, from: u64, limit: usize) -> Result<Vec<String>> {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection
        .prepare_cached("SELECT line FROM certificate_log WHERE seq >= ?1 ORDER BY seq LIMIT ?2")
        .and_then(|mut statement| {
            statement.query_map(params![number(from), limit], |row| row.get(0))?.collect()
        })
        .map_err(failed("reading the log of certificates"))
}

pub fn add_key_change(connection: &Connection, change: &str) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO certificate_key_change (doc) VALUES (?1) ON CONFLICT DO NOTHING")
        .and_then(|mut statement| statement.execute([change]))
        .map_err(failed("writing a change of the key of certificates"))?;
    Ok(())
}

pub fn key_changes(connection: &Connection) -> Result<Vec<String>> {
    connection
        .prepare_cached("SELECT doc FROM certificate_key_change ORDER BY seq")
        .and_then(|mut statement| statement.query_map([], |row| row.get(0))?.collect())
        .map_err(|error| {
            StoreError::caused("reading the changes of the key of certificates".to_owned(), error)
        })
}
