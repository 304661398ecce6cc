//! Functions of SQL statements that read lists.

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, Result};
use store::node_filter::contains;

/// Give a connection `text_contains(text, part)`: whether a text contains `part`, which is in lower case, in any letter case.
/// SQLite's own `lower` knows ASCII only.
pub fn add_to(connection: &Connection) -> Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function("text_contains", 2, flags, |call| {
        let text = call.get_raw(0).as_str_or_null()?;
        let part = call.get_raw(1).as_str()?;
        Ok(text.is_some_and(|text| contains(text, part)))
    })
}
