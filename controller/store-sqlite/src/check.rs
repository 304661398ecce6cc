//! Whether the database is whole: what is looked at before the controller serves, and what is looked at while it runs.

use crate::open_error::OpenError;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::Path;

/// The tables that the conductor reads, and that it cannot work without.
const NEEDED: [&str; 6] = ["node", "contact", "catalogue", "lease", "inventory", "resource"];

/// Check that the database can be written, and read each row of the tables that the conductor reads, with their indexes.
pub fn at_start(writer: &Connection) -> rusqlite::Result<()> {
    for table in NEEDED {
        // A whole row is only read where its last column is asked for.
        let sql = format!("SELECT count(*), sum(length(CAST({} AS BLOB))) FROM {table}", last_column(table));
        writer.query_row(&sql, [], |_| Ok(()))?;
    }
    writer.query_row(
        "SELECT min(next_wake_at), count(*) FROM node WHERE next_wake_at IS NOT NULL",
        [],
        |_| Ok(()),
    )?;
    // Written to the log as every page is, even if nothing in it has changed.
    let version: i64 = writer.pragma_query_value(None, "user_version", |row| row.get(0))?;
    writer.pragma_update(None, "user_version", version)
}

fn last_column(table: &str) -> &'static str {
    if table == "lease" { "holder" } else { "doc" }
}

/// The first fault that SQLite finds in any page, index or reference of the database at `path`; `None` if it is whole. Takes
/// seconds for each GiB; writes go on meanwhile.
///
/// # Errors
/// The file cannot be read.
pub fn first_fault(path: &Path) -> Result<Option<String>, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let look = || -> rusqlite::Result<Option<String>> {
        let file = Connection::open_with_flags(path, flags)?;
        let found: String = file.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if found != "ok" {
            return Ok(Some(found));
        }
        let orphan = file.prepare("PRAGMA foreign_key_check")?.exists([])?;
        Ok(orphan.then(|| "rows that belong to no node".to_owned()))
    };
    match look() {
        Ok(found) => Ok(found),
        Err(error) if is_damage(&error) => Ok(Some(error.to_string())),
        Err(source) => Err(OpenError::Sqlite { path: path.to_owned(), source }),
    }
}

/// Whether an error says that the file is damaged.
pub fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}
