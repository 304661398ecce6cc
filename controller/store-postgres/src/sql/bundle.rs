//! Bundles of external hardware managers.

use crate::change::{Change, rows};
use crate::database::Client;
use crate::document::{cell, decode, encode};
use crate::failure::failed;
use crate::text;
use model::{Bundle, Scope};
use store::{Noun, Result, StoreError};
use tokio_postgres::Row;

/// Put `bundle` in the place of the one of its name and scope.
pub async fn put(change: &Change, bundle: &Bundle) -> Result<Option<Bundle>> {
    const PUT: &str = "INSERT INTO bundle (name, scope, digest, node, doc) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (name, scope) DO UPDATE SET digest = excluded.digest, node = excluded.node, doc = excluded.doc";
    let doing = || format!("writing bundle {}", bundle.name);
    // One at a time, so that each knows which one it replaces. Reads go on.
    change.batch("LOCK TABLE bundle IN SHARE ROW EXCLUSIVE MODE").await.map_err(failed(doing()))?;
    let scope = bundle.scope.to_string();
    let (name, scope, digest) =
        (text::stored(&bundle.name), text::stored(&scope), text::stored(&bundle.digest));
    let (name, scope, digest) = (&*name, &*scope, &*digest);
    let old = change
        .query_opt("SELECT doc FROM bundle WHERE name = $1 AND scope = $2", &[&name, &scope])
        .await
        .map_err(failed(doing()))?;
    let node = match bundle.scope {
        Scope::Node(node) => Some(node),
        _ => None,
    };
    let doc = encode("bundle", &bundle.name, bundle)?;
    match (change.execute(PUT, &[&name, &scope, &digest, &node, &doc]).await, node) {
        (Ok(_), _) => old.as_ref().map(of_row).transpose(),
        (Err(orphan), Some(node)) if orphan.is_orphan() => Err(StoreError::not_found(Noun::Node, node)),
        (Err(error), _) => Err(error.while_doing(doing())),
    }
}

fn of_row(row: &Row) -> Result<Bundle> {
    decode("bundle", "", cell(row, 0)?)
}

fn sorted(rows: &[Row]) -> Result<Vec<Bundle>> {
    let mut bundles = rows.iter().map(of_row).collect::<Result<Vec<_>>>()?;
    bundles.sort_by(|one, other| (&one.name, &one.scope).cmp(&(&other.name, &other.scope)));
    Ok(bundles)
}

pub async fn all(client: &Client) -> Result<Vec<Bundle>> {
    let found = rows(client, "SELECT doc FROM bundle", &[]).await;
    sorted(&found.map_err(failed("reading bundles"))?)
}

/// Those of `digest` in `scope`, or in any.
pub async fn delete(change: &Change, digest: &str, scope: Option<&str>) -> Result<Vec<Bundle>> {
    const DELETE: &str =
        "DELETE FROM bundle WHERE digest = $1 AND ($2::text IS NULL OR scope = $2) RETURNING doc";
    let (stored, scope) = (text::stored(digest), scope.map(text::stored));
    let gone = change.query(DELETE, &[&&*stored, &scope.as_deref()]).await;
    let gone = sorted(&gone.map_err(failed("deleting a bundle"))?)?;
    if gone.is_empty() { Err(StoreError::not_found(Noun::Bundle, digest)) } else { Ok(gone) }
}
