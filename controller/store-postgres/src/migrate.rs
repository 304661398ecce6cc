//! Schema versions. Migrations are applied in order, each in a transaction of its own that also sets the version, under a lock
//! of the database: of several controllers that start at once, one migrates and the others go on after it. A migration that
//! has been released is never edited.

use crate::change::{Change, Commit};
use crate::failure::Failure;
use crate::open_error::OpenError;
use deadpool_postgres::Pool;

/// One step from a schema to the next.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Name of its file.
    pub name: &'static str,
    /// What it does.
    pub sql: &'static str,
}

/// All migrations. The first makes schema 1.
pub const MIGRATIONS: &[Migration] =
    &[Migration { name: "0001_initial", sql: include_str!("../migrations/0001_initial.sql") }];

/// Whose version it is, and that the database is ours.
const VERSION: &str = "CREATE TABLE IF NOT EXISTS anneal_schema (
    id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1), version bigint NOT NULL);
    INSERT INTO anneal_schema (version) VALUES (0) ON CONFLICT DO NOTHING";

const LOCK: &str = "SELECT pg_advisory_xact_lock(4711, 1)";

/// What a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Ours, or empty, with this many migrations applied.
    Applied(usize),
    /// Ours, with a schema that this controller does not know.
    Newer(i64),
    /// Not ours.
    Foreign,
}

/// `version`: of the schema, if the table of that is there; `relations`: how many tables and the like there are.
fn judge(version: Option<i64>, relations: i64, known: usize) -> Found {
    match version {
        None if relations == 0 => Found::Applied(0),
        None => Found::Foreign,
        Some(version) => match usize::try_from(version) {
            Ok(applied) if applied <= known => Found::Applied(applied),
            _ => Found::Newer(version),
        },
    }
}

/// Look at a database without changing it.
pub async fn inspect(change: &Change, known: usize) -> Result<Found, Failure> {
    const LOOK: &str = "SELECT to_regclass('anneal_schema') IS NOT NULL, count(*) FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')";
    let Some(row) = change.query_opt(LOOK, &[]).await? else { return Ok(Found::Foreign) };
    let (is_ours, relations): (bool, i64) = (row.try_get(0)?, row.try_get(1)?);
    let version = match is_ours {
        false => None,
        true => {
            let row = change.query_opt("SELECT version FROM anneal_schema", &[]).await?;
            Some(row.map_or(Ok(-1), |row| row.try_get(0))?)
        }
    };
    Ok(judge(version, relations, known))
}

/// Apply what is missing of the `migrations`.
pub async fn apply(pool: &Pool, name: &str, migrations: &[Migration]) -> Result<(), OpenError> {
    let failed = |source| OpenError::Failed { name: name.to_owned(), source };
    loop {
        let client = pool.get().await.map_err(|error| failed(error.into()))?;
        let change = Change::begin(client, "BEGIN").await.map_err(failed)?;
        // What comes after this statement sees what the holder of the lock before it did.
        change.query(LOCK, &[]).await.map_err(failed)?;
        let applied = match inspect(&change, migrations.len()).await.map_err(failed)? {
            Found::Applied(applied) => applied,
            Found::Foreign => return Err(OpenError::Foreign { name: name.to_owned() }),
            Found::Newer(found) => {
                let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
                return Err(OpenError::Newer { name: name.to_owned(), found, known });
            }
        };
        let Some(migration) = migrations.get(applied) else {
            change.roll_back().await;
            return Ok(());
        };
        let wrong =
            |source| OpenError::Migration { name: name.to_owned(), migration: migration.name, source };
        let steps = async {
            // Building an index of a large table takes longer than a statement of the store may.
            change.batch("SET LOCAL statement_timeout = 0").await?;
            change.batch(VERSION).await?;
            change.batch(migration.sql).await?;
            change.batch("UPDATE anneal_schema SET version = version + 1").await
        };
        steps.await.map_err(wrong)?;
        match change.commit().await {
            Commit::Done => tracing::info!(migration = migration.name, "schema migrated"),
            Commit::Undone(source) | Commit::NoAnswer(source) => return Err(wrong(source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_recognized_by_its_table_of_the_version() {
        assert_eq!(judge(None, 0, 3), Found::Applied(0));
        assert_eq!(judge(None, 1, 3), Found::Foreign);
        assert_eq!(judge(Some(1), 9, 3), Found::Applied(1));
        assert_eq!(judge(Some(3), 9, 3), Found::Applied(3));
        for newer in [4, i64::MAX, -1] {
            assert_eq!(judge(Some(newer), 9, 3), Found::Newer(newer));
        }
    }
}
