//! The database as a whole: which key it has, the first encryption, and what to do when the key is lost.

use super::add_to;
use crate::lock::Lock;
use crate::open_error::OpenError;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use std::path::Path;
use stored_secrets::{DatabaseKey, RemovedSecrets, without_secrets};

/// Check that `key` is the key of this database. One whose secrets are not encrypted yet, or that is new, is encrypted
/// with it; `Ok(false)`: it has another key.
pub fn prepare(writer: &mut Connection, key: &DatabaseKey) -> rusqlite::Result<bool> {
    add_to(writer, key)?;
    let stored = writer
        .query_row("SELECT check_value, vacuumed FROM secret_key", [], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?))
        })
        .optional()?;
    let vacuumed = match stored {
        Some((check, vacuumed)) if key.made(&check) => vacuumed,
        Some(_) => return Ok(false),
        None => {
            let check = key.check_value().ok_or(rusqlite::Error::InvalidQuery)?;
            encrypt(writer, &check)?;
            false
        }
    };
    if !vacuumed && let Err(error) = purge(writer) {
        tracing::warn!(%error, "old copies of passwords may still be in free pages of the database; next start tries again");
    }
    Ok(true)
}

fn encrypt(writer: &mut Connection, check: &str) -> rusqlite::Result<()> {
    let change = writer.transaction()?;
    let nodes = change.execute("UPDATE node SET doc = seal_secrets('node', uuid, doc)", [])?;
    change.execute("UPDATE resource SET doc = seal_secrets('resource', uuid, doc)", [])?;
    change.execute("INSERT INTO secret_key (id, check_value, vacuumed) VALUES (1, ?1, 0)", [check])?;
    change.commit()?;
    if nodes > 0 {
        tracing::info!(nodes, "the passwords in the database are now encrypted");
    }
    Ok(())
}

/// Write the file anew, without the free pages and the log that hold what was there before.
fn purge(writer: &Connection) -> rusqlite::Result<()> {
    let truncate = || -> rusqlite::Result<()> {
        writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)).map(drop)
    };
    writer.execute_batch("VACUUM")?;
    truncate()?;
    writer.execute("UPDATE secret_key SET vacuumed = 1", [])?;
    truncate()
}

/// Whether the secrets of the database at `path` are encrypted. One that does not exist, or is of a version that did not
/// encrypt, is not.
///
/// # Errors
/// The file cannot be read.
pub fn are_encrypted(path: &Path) -> Result<bool, OpenError> {
    if !path.exists() {
        return Ok(false);
    }
    let read = || -> rusqlite::Result<bool> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let file = Connection::open_with_flags(path, flags)?;
        let has_table = "SELECT 1 FROM sqlite_schema WHERE name = 'secret_key'";
        Ok(file.prepare(has_table)?.exists([])? && file.prepare("SELECT 1 FROM secret_key")?.exists([])?)
    };
    read().map_err(|source| OpenError::Sqlite { path: path.to_owned(), source })
}

/// Remove all encrypted secrets of the database at `path`, whose key is lost. The next start takes a new key.
///
/// # Errors
/// A controller uses the database, or it cannot be read or written.
pub fn forget(path: &Path) -> Result<Vec<RemovedSecrets>, OpenError> {
    let path = crate::path::resolve(path)?;
    let _lock = Lock::take(&path)?;
    let work = || -> rusqlite::Result<Vec<RemovedSecrets>> {
        let mut file = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let change = file.transaction()?;
        let mut forgotten = Vec::new();
        for (table, name) in [("node", "coalesce(name, uuid)"), ("resource", "kind || ' ' || uuid")] {
            let mut rows = change.prepare(&format!("SELECT rowid, {name}, doc FROM {table} ORDER BY 2"))?;
            let rows = rows.query_map([], |row| {
                Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get_ref(2)?.as_bytes()?.to_vec()))
            })?;
            for row in rows {
                let (id, of, doc): (i64, String, Vec<u8>) = row?;
                let Some((rest, names)) = without_secrets(&doc) else { continue };
                change
                    .execute(&format!("UPDATE {table} SET doc = ?2 WHERE rowid = ?1"), params![id, rest])?;
                forgotten.push(RemovedSecrets { of, names });
            }
        }
        change.execute("DELETE FROM secret_key", [])?;
        change.commit()?;
        Ok(forgotten)
    };
    work().map_err(|source| OpenError::Sqlite { path: path.clone(), source })
}
