//! Bundles of external hardware managers.

use super::node_version;
use crate::document::{encode, failed, select};
use crate::writer::Change;
use model::{Bundle, Scope};
use rusqlite::{Connection, params};
use store::{Noun, Result, StoreError};

const TABLE: &str = "bundle";

/// Put `bundle` in the place of the one of its name and scope.
pub fn put(connection: &Change<'_>, bundle: &Bundle) -> Result<Option<Bundle>> {
    if let Scope::Node(uuid) = bundle.scope {
        node_version::check_exists(connection, uuid)?;
    }
    let scope = bundle.scope.to_string();
    let sql = "SELECT name, doc FROM bundle WHERE name = ?1 AND scope = ?2";
    let old = select(connection, TABLE, sql, params![bundle.name, scope])?.pop();
    let doc = encode(TABLE, &bundle.name, bundle)?;
    connection
        .prepare_cached(
            "INSERT INTO bundle (name, scope, doc) VALUES (?1, ?2, ?3)
             ON CONFLICT (name, scope) DO UPDATE SET doc = excluded.doc",
        )
        .and_then(|mut statement| statement.execute(params![bundle.name, scope, doc]))
        .map_err(failed(format_args!("writing bundle {}", bundle.name)))?;
    Ok(old)
}

pub fn all(connection: &Connection) -> Result<Vec<Bundle>> {
    let mut bundles: Vec<Bundle> = select(connection, TABLE, "SELECT name, doc FROM bundle", [])?;
    bundles.sort_by(|one, other| (&one.name, &one.scope).cmp(&(&other.name, &other.scope)));
    Ok(bundles)
}

/// Those of `digest` in `scope`, or in any.
pub fn delete(connection: &Connection, digest: &str, scope: Option<&str>) -> Result<Vec<Bundle>> {
    let sql = "DELETE FROM bundle WHERE digest = ?1 AND (?2 IS NULL OR scope = ?2) RETURNING name, doc";
    let mut gone: Vec<Bundle> = select(connection, TABLE, sql, params![digest, scope])?;
    if gone.is_empty() {
        return Err(StoreError::not_found(Noun::Bundle, digest));
    }
    gone.sort_by(|one, other| (&one.name, &one.scope).cmp(&(&other.name, &other.scope)));
    Ok(gone)
}
