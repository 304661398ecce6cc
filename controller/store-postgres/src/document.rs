//! The JSON documents in the rows, and the secrets in them. A message about one names the row and never quotes it.

use crate::failure::failed;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use store::{Result, StoreError};
use stored_secrets::{DatabaseKey, DecryptionError, has_mark, opened, sealed};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

/// The document of `value`, in row `row` of `table`.
///
/// It is read back at once: a document that cannot be read again (say, JSON nested deeper than the parser allows)
/// must not be written.
pub fn encode<T: Serialize + DeserializeOwned>(table: &str, row: impl Display, value: &T) -> Result<String> {
    let text = serde_json::to_string(value).map_err(|error| unreadable(table, &row, &error))?;
    decode::<T>(table, row, &text)?;
    Ok(text)
}

/// The value of the document in row `row` of `table`.
pub fn decode<T: DeserializeOwned>(table: &str, row: impl Display, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| unreadable(table, &row, &error))
}

/// As [`encode`], with its secrets encrypted.
pub fn seal<T: Serialize + DeserializeOwned>(
    key: &DatabaseKey,
    table: &str,
    row: impl Display,
    value: &T,
) -> Result<String> {
    let (row, text) = (row.to_string(), encode(table, &row, value)?);
    let of_row = key.of_row(table, &row).ok_or(DecryptionError);
    let done = of_row.and_then(|key| sealed(&key, text.as_bytes()));
    Ok(done.map_err(|error| StoreError::caused(format!("{table} {row}"), error))?.unwrap_or(text))
}

/// As [`decode`], with its secrets decrypted.
pub fn open<T: DeserializeOwned>(key: &DatabaseKey, table: &str, row: impl Display, text: &str) -> Result<T> {
    if !has_mark(text.as_bytes()) {
        return decode(table, row, text);
    }
    let row = row.to_string();
    let of_row = key.of_row(table, &row).ok_or(DecryptionError);
    let plain = of_row.and_then(|key| opened(&key, text.as_bytes()));
    let plain = plain.map_err(|error| StoreError::caused(format!("{table} {row}"), error))?;
    decode(table, row, plain.as_deref().unwrap_or(text))
}

/// serde's own message may quote the document, so the text has only kind and place of the error.
fn unreadable(table: &str, row: &dyn Display, error: &serde_json::Error) -> StoreError {
    let (kind, line, column) = (error.classify(), error.line(), error.column());
    StoreError::failed(format!(
        "{table} {row}: its document cannot be read ({kind:?} error at line {line} column {column})"
    ))
}

/// A column of a row.
pub fn cell<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(failed(format_args!("reading column {column} of an answer")))
}
