//! Reports of controllers.

use crate::document::{encode, failed, select};
use model::ConductorReport;
use rusqlite::{Connection, params};
use store::Result;

const TABLE: &str = "conductor";

/// Put a report in the place of the one of its controller.
pub fn put(connection: &Connection, report: &ConductorReport) -> Result<()> {
    let hostname = &report.hostname;
    let doc = encode(TABLE, hostname, report)?;
    let sql = "INSERT INTO conductor (hostname, doc) VALUES (?1, ?2)
               ON CONFLICT (hostname) DO UPDATE SET doc = excluded.doc";
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![hostname, doc]))
        .map_err(failed(format_args!("writing the report of controller {hostname}")))?;
    Ok(())
}

pub fn remove(connection: &Connection, hostname: &str) -> Result<()> {
    connection
        .prepare_cached("DELETE FROM conductor WHERE hostname = ?1")
        .and_then(|mut statement| statement.execute([hostname]))
        .map_err(failed(format_args!("removing the report of controller {hostname}")))?;
    Ok(())
}

pub fn all(connection: &Connection) -> Result<Vec<ConductorReport>> {
    select(connection, TABLE, "SELECT hostname, doc FROM conductor ORDER BY hostname", [])
}
