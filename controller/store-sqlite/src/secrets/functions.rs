//! The two functions, as SQL statements call them.

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::Value;
use rusqlite::{Connection, Error, Result};
use stored_secrets::{DatabaseKey, DecryptionError, RowKey, has_mark, opened, sealed};

/// A row whose secrets cannot be decrypted.
#[derive(Debug, thiserror::Error)]
// SQLite passes on the text, and not what caused it.
#[error("{table} {row}: {reason}")]
struct Unreadable {
    table: String,
    row: String,
    reason: DecryptionError,
}

/// Give a connection `seal_secrets` and `open_secrets`. No view or trigger of a database can call them.
pub fn add_to(connection: &Connection, key: &DatabaseKey) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
    let own = key.clone();
    // A column of text takes nothing else.
    let text = |doc: &[u8]| Value::Text(String::from_utf8_lossy(doc).into_owned());
    connection.create_scalar_function("seal_secrets", 3, flags, move |call| {
        let doc = call.get_raw(2).as_bytes()?;
        Ok(changed(call, &own, doc, sealed)?.unwrap_or_else(|| text(doc)))
    })?;
    let own = key.clone();
    // The bytes as they are: damaged text is found by the reader, which names the row.
    connection.create_scalar_function("open_secrets", 3, flags, move |call| {
        let doc = call.get_raw(2).as_bytes()?;
        let opened = if has_mark(doc) { changed(call, &own, doc, opened)? } else { None };
        Ok(opened.unwrap_or_else(|| Value::Blob(doc.to_vec())))
    })
}

/// The document for the arguments table and row, if `change` changes it.
fn changed(
    call: &Context<'_>,
    key: &DatabaseKey,
    doc: &[u8],
    change: fn(&RowKey, &[u8]) -> std::result::Result<Option<String>, DecryptionError>,
) -> Result<Option<Value>> {
    let (table, row): (String, String) = (call.get(0)?, call.get(1)?);
    let done = key.of_row(&table, &row).ok_or(DecryptionError).and_then(|key| change(&key, doc));
    match done {
        Ok(text) => Ok(text.map(Value::Text)),
        Err(reason) => Err(Error::UserFunctionError(Box::new(Unreadable { table, row, reason }))),
    }
}
