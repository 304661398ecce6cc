//! The key of the database as a whole: whether it is the right one, and what to do when it is lost.

use crate::address::{self, Settings};
use crate::change::{Change, Commit};
use crate::connect::{self, Tls};
use crate::failure::Failure;
use crate::migrate::{self, Found, MIGRATIONS};
use crate::open_error::OpenError;
use deadpool_postgres::Pool;
use stored_secrets::{DatabaseKey, RemovedSecrets, without_secrets};
use uuid::Uuid;

/// Whether `key` is the key of this database. One that has none yet gets it.
pub async fn prepare(change: &Change, key: &DatabaseKey) -> Result<bool, Failure> {
    let Some(check) = key.check_value() else { return Ok(false) };
    let sql = "INSERT INTO secret_key (check_value) VALUES ($1) ON CONFLICT (id) DO NOTHING";
    change.execute(sql, &[&check]).await?;
    let stored = change.query_opt("SELECT check_value FROM secret_key", &[]).await?;
    let stored = stored.map(|row| row.try_get::<_, String>(0)).transpose()?;
    Ok(stored.is_some_and(|stored| key.made(&stored)))
}

/// A transaction on a database whose schema is known, without changing that; none if it is empty.
async fn look(pool: &Pool, name: &str) -> Result<Option<Change>, OpenError> {
    let failed = |source| OpenError::Failed { name: name.to_owned(), source };
    let client = pool.get().await.map_err(|error| failed(error.into()))?;
    let change = Change::begin(client, "BEGIN").await.map_err(failed)?;
    match migrate::inspect(&change, MIGRATIONS.len()).await.map_err(failed)? {
        Found::Applied(0) => Ok(None),
        Found::Applied(_) | Found::Ahead(_) => Ok(Some(change)),
        Found::Foreign => Err(OpenError::Foreign { name: name.to_owned() }),
        Found::Newer(found) => {
            let known = migrate::number(MIGRATIONS.len());
            Err(OpenError::Newer { name: name.to_owned(), found, known })
        }
    }
}

fn one_connection(settings: &Settings) -> Result<(Pool, String), OpenError> {
    let address = address::read(settings)?;
    let pool = connect::pool(&address, &Tls::of(&address.trust)?, settings, 1)?;
    Ok((pool, address.name))
}

/// Whether the secrets of a database are encrypted; an empty one has none.
///
/// # Errors
/// It cannot be reached, or is of another program or a newer version.
pub async fn are_encrypted(settings: &Settings) -> Result<bool, OpenError> {
    let (pool, name) = one_connection(settings)?;
    let Some(change) = look(&pool, &name).await? else { return Ok(false) };
    let found = change.query_opt("SELECT 1 FROM secret_key", &[]).await;
    found.map(|row| row.is_some()).map_err(|source| OpenError::Failed { name, source })
}

/// Remove all encrypted secrets of a database whose key is lost. The next start takes a new key.
///
/// # Errors
/// A controller uses it, or it cannot be reached or written.
pub async fn forget(settings: &Settings) -> Result<Vec<RemovedSecrets>, OpenError> {
    let (pool, name) = one_connection(settings)?;
    let failed = |source| OpenError::Failed { name: name.clone(), source };
    let Some(change) = look(&pool, &name).await? else { return Ok(Vec::new()) };
    if !is_alone(&change).await.map_err(failed)? {
        return Err(OpenError::InUse { name });
    }
    let work = async {
        let mut forgotten = remove(&change, "node", "''").await?;
        forgotten.extend(remove(&change, "resource", "kind || ' '").await?);
        change.execute("DELETE FROM secret_key", &[]).await?;
        Ok(forgotten)
    };
    let forgotten = work.await.map_err(failed)?;
    match change.commit().await {
        Commit::Done => Ok(forgotten),
        Commit::Undone(failure) | Commit::NoAnswer(failure) => Err(failed(failure)),
    }
}

/// Whether a controller uses a database.
///
/// # Errors
/// It cannot be reached, or is of another program or a newer version.
pub async fn is_in_use(settings: &Settings) -> Result<bool, OpenError> {
    let (pool, name) = one_connection(settings)?;
    let Some(change) = look(&pool, &name).await? else { return Ok(false) };
    let alone = is_alone(&change).await;
    change.roll_back().await;
    alone.map(|alone| !alone).map_err(|source| OpenError::Failed { name, source })
}

/// Whether no controller uses the database, and none begins to until the end of the transaction.
async fn is_alone(change: &Change) -> Result<bool, Failure> {
    let row = change.query_opt("SELECT pg_try_advisory_xact_lock(4711, 3)", &[]).await?;
    row.map_or(Ok(false), |row| Ok(row.try_get(0)?))
}

async fn remove(change: &Change, table: &str, kind: &str) -> Result<Vec<RemovedSecrets>, Failure> {
    let own = if table == "node" { "coalesce(name, uuid::text)" } else { "uuid::text" };
    let sql = format!("SELECT uuid, {kind} || {own}, doc FROM {table} ORDER BY 2");
    let mut forgotten = Vec::new();
    for row in change.query(&sql, &[]).await? {
        let (uuid, of, doc): (Uuid, String, &str) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let Some((rest, names)) = without_secrets(doc.as_bytes()) else { continue };
        let sql = format!("UPDATE {table} SET doc = $2 WHERE uuid = $1 AND doc = $3");
        change.execute(&sql, &[&uuid, &rest, &doc]).await?;
        forgotten.push(RemovedSecrets { of, names });
    }
    Ok(forgotten)
}
