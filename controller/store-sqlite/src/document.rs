//! The JSON documents in the rows. A message about one names the row and never quotes it: documents hold
//! secrets.

use crate::node_cache::bytes_of;
use rusqlite::{Connection, Params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::fmt::Display;
use store::{Result, StoreError};

/// A failure of the database while doing `what`.
pub fn failed<E: Error + Send + Sync + 'static>(what: impl Display) -> impl FnOnce(E) -> StoreError {
    move |error| StoreError::caused(what.to_string(), error)
}

/// The document of `value`, in row `key` of `table`.
///
/// It is read back at once: a document that cannot be read again (say, JSON nested deeper than the parser allows)
/// must not be written.
pub fn encode<T: Serialize + DeserializeOwned>(table: &str, key: impl Display, value: &T) -> Result<String> {
    read_back(table, key, value).map(|(text, _)| text)
}

/// The same, with what it is when it is read.
pub fn read_back<T: Serialize + DeserializeOwned>(
    table: &str,
    key: impl Display,
    value: &T,
) -> Result<(String, T)> {
    let text = serde_json::to_string(value).map_err(|error| unreadable(table, &key, &error))?;
    let read = decode(table, key, text.as_bytes())?;
    Ok((text, read))
}

/// The value of the document in row `key` of `table`.
pub fn decode<T: DeserializeOwned>(table: &str, key: impl Display, text: &[u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(|error| unreadable(table, &key, &error))
}

/// serde's own message may quote the document, so the text has only kind and place of the error.
fn unreadable(table: &str, key: &dyn Display, error: &serde_json::Error) -> StoreError {
    let (kind, line, column) = (error.classify(), error.line(), error.column());
    StoreError::failed(format!(
        "{table} {key}: its document cannot be read ({kind:?} error at line {line} column {column})"
    ))
}

/// The first value of a query whose first two columns are the key of a row of `table` and its document, with what the
/// document says of its size in memory.
pub fn first<T: DeserializeOwned>(
    connection: &Connection,
    table: &str,
    sql: &str,
    params: impl Params,
) -> Result<Option<(T, usize)>> {
    let read = || -> rusqlite::Result<Option<Result<(T, usize)>>> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let (key, text) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_bytes()?);
        Ok(Some(decode(table, key, text).map(|value| (value, bytes_of::<T>(text)))))
    };
    read().map_err(failed(format_args!("reading {table}")))?.transpose()
}

/// The values of a query whose first two columns are the key of a row of `table` and its document.
pub fn select<T: DeserializeOwned>(
    connection: &Connection,
    table: &str,
    sql: &str,
    params: impl Params,
) -> Result<Vec<T>> {
    let read = || -> rusqlite::Result<Vec<(String, Vec<u8>)>> {
        let mut statement = connection.prepare_cached(sql)?;
        // The bytes, not the text: damaged UTF-8 is then found by `decode`, which can name the row.
        statement.query_map(params, |row| Ok((row.get(0)?, row.get_ref(1)?.as_bytes()?.to_vec())))?.collect()
    };
    let rows = read().map_err(failed(format_args!("reading {table}")))?;
    rows.into_iter().map(|(key, text)| decode(table, key, &text)).collect()
}
