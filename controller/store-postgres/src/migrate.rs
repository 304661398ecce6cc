//! Schema versions. Migrations are applied in order, each in a transaction of its own that also sets the version, under a lock
//! of the database: of several controllers that start at once, one migrates and the others go on after it. A migration that
//! has been released is never edited.
//!
//! Controllers of two versions work side by side while one after the other is upgraded. So a migration only adds, and what a
//! later one takes away must not be used by any controller that is alive: the database says which controllers can use it, and
//! each controller says what it knows (CONTRIBUTING.md).

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
    /// How many migrations a controller must know at least to go on working on the database after this one.
    pub oldest: usize,
}

/// All migrations. The first makes schema 1.
pub const MIGRATIONS: &[Migration] = &[
    Migration { name: "0001_initial", sql: include_str!("../migrations/0001_initial.sql"), oldest: 1 },
    Migration {
        name: "0002_epochs_follow_the_timeline",
        sql: include_str!("../migrations/0002_epochs_follow_the_timeline.sql"),
        oldest: 1,
    },
    Migration { name: "0003_event_log", sql: include_str!("../migrations/0003_event_log.sql"), oldest: 1 },
    Migration { name: "0004_discovery", sql: include_str!("../migrations/0004_discovery.sql"), oldest: 1 },
];

/// A count of migrations, as the database has it.
pub fn number(migrations: usize) -> i64 {
    i64::try_from(migrations).unwrap_or(i64::MAX)
}

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
    /// Ours, with more migrations than this controller knows, which lets it work.
    Ahead(i64),
    /// The same, which does not let it work.
    Newer(i64),
    /// Not ours.
    Foreign,
}

/// `version` of the schema and the `oldest` that a controller must know, if the table of those is there; `relations`: how many
/// tables and the like there are.
fn judge(version: Option<(i64, Option<i64>)>, relations: i64, known: usize) -> Found {
    let Some((version, oldest)) = version else {
        return if relations == 0 { Found::Applied(0) } else { Found::Foreign };
    };
    match usize::try_from(version) {
        Ok(applied) if applied <= known => Found::Applied(applied),
        Ok(_) if oldest.is_some_and(|oldest| oldest <= number(known)) => Found::Ahead(version),
        _ => Found::Newer(version),
    }
}

/// Look at a database without changing it.
pub async fn inspect(change: &Change, known: usize) -> Result<Found, Failure> {
    const LOOK: &str = "SELECT to_regclass('anneal_schema') IS NOT NULL, count(*) FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')";
    // Schema 1 has no column `oldest`.
    const VERSION: &str = "SELECT version, (to_jsonb(s) ->> 'oldest')::bigint FROM anneal_schema s";
    let Some(row) = change.query_opt(LOOK, &[]).await? else { return Ok(Found::Foreign) };
    let (is_ours, relations): (bool, i64) = (row.try_get(0)?, row.try_get(1)?);
    let version = match is_ours {
        false => None,
        true => match change.query_opt(VERSION, &[]).await? {
            Some(row) => Some((row.try_get(0)?, row.try_get(1)?)),
            None => Some((-1, None)),
        },
    };
    Ok(judge(version, relations, known))
}

/// The controllers that are alive and know fewer than `needed` migrations, with how many they know.
async fn too_old(change: &Change, needed: usize) -> Result<Vec<(String, i64)>, Failure> {
    const ALIVE: &str = "SELECT hostname, coalesce((to_jsonb(c) ->> 'schema')::bigint, 1) FROM conductor c
        WHERE (doc::jsonb ->> 'alive_until')::bigint > extract(epoch FROM clock_timestamp()) * 1000000
            AND coalesce((to_jsonb(c) ->> 'schema')::bigint, 1) < $1
        ORDER BY hostname";
    let found = change.query(ALIVE, &[&number(needed)]).await?;
    found.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
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
            Found::Ahead(found) => {
                tracing::info!(
                    schema = found,
                    "a newer controller has migrated the database; this one can use it"
                );
                migrations.len()
            }
            Found::Foreign => return Err(OpenError::Foreign { name: name.to_owned() }),
            Found::Newer(found) => {
                let known = number(migrations.len());
                return Err(OpenError::Newer { name: name.to_owned(), found, known });
            }
        };
        let Some(migration) = migrations.get(applied) else {
            change.roll_back().await;
            return Ok(());
        };
        if migration.oldest > 1
            && let Some((hostname, knows)) =
                too_old(&change, migration.oldest).await.map_err(failed)?.into_iter().next()
        {
            let (name, needs) = (name.to_owned(), number(migration.oldest));
            return Err(OpenError::OldController { name, migration: migration.name, hostname, knows, needs });
        }
        let wrong =
            |source| OpenError::Migration { name: name.to_owned(), migration: migration.name, source };
        let steps = async {
            // Building an index of a large table takes longer than a statement of the store may.
            change.batch("SET LOCAL statement_timeout = 0").await?;
            change.batch(VERSION).await?;
            change.batch(migration.sql).await?;
            if migration.oldest > 1 {
                let oldest = migration.oldest;
                change
                    .batch(&format!("UPDATE anneal_schema SET oldest = greatest(oldest, {oldest})"))
                    .await?;
            }
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
        assert_eq!(judge(Some((1, None)), 9, 3), Found::Applied(1));
        assert_eq!(judge(Some((3, Some(1))), 9, 3), Found::Applied(3));
        assert_eq!(judge(Some((4, Some(3))), 9, 3), Found::Ahead(4), "it only added");
        for (newer, oldest) in [(4, Some(4)), (4, None), (i64::MAX, Some(4)), (-1, None)] {
            assert_eq!(judge(Some((newer, oldest)), 9, 3), Found::Newer(newer));
        }
    }

    #[test]
    fn no_migration_asks_for_more_than_itself_or_for_less_than_one_before_it() {
        let oldest: Vec<usize> = MIGRATIONS.iter().map(|migration| migration.oldest).collect();
        assert!(oldest.is_sorted() && oldest.iter().zip(1..).all(|(oldest, own)| (1..=own).contains(oldest)));
    }
}
