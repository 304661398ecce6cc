//! Schema versions. Migrations are applied in order, each in a transaction of its own that also sets
//! `user_version`, so a controller that dies in between goes on where it was. A migration that has been
//! released is never edited.

use rusqlite::{Connection, TransactionBehavior};

/// One step from a schema to the next.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Name of its file.
    pub name: &'static str,
    /// What it does.
    pub sql: &'static str,
}

/// All migrations; the schema's version is how many of them were applied.
pub const MIGRATIONS: &[Migration] = &[
    Migration { name: "0001_initial", sql: include_str!("../migrations/0001_initial.sql") },
    Migration {
        name: "0002_templates_and_inventory",
        sql: include_str!("../migrations/0002_templates_and_inventory.sql"),
    },
    Migration { name: "0003_bundles", sql: include_str!("../migrations/0003_bundles.sql") },
    Migration { name: "0004_certificates", sql: include_str!("../migrations/0004_certificates.sql") },
    Migration { name: "0005_resources", sql: include_str!("../migrations/0005_resources.sql") },
];

/// `application_id` of our databases ("Annl"), set by the first migration.
pub const APPLICATION_ID: i64 = 0x416E_6E6C;

/// What a file turned out to be before anything in it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Ours, or empty, with this many migrations applied.
    Version(usize),
    /// Ours, by a newer controller.
    Newer(i64),
    /// Somebody else's.
    Foreign,
}

/// Look at a database without changing it.
pub fn inspect(connection: &Connection) -> rusqlite::Result<Found> {
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(judge(application, version, tables == 0, MIGRATIONS.len()))
}

fn judge(application: i64, version: i64, empty: bool, known: usize) -> Found {
    match (application, usize::try_from(version)) {
        (0, Ok(0)) if empty => Found::Version(0),
        (APPLICATION_ID, Ok(applied)) if (1..=known).contains(&applied) => Found::Version(applied),
        (APPLICATION_ID, Ok(applied)) if applied > known => Found::Newer(version),
        _ => Found::Foreign,
    }
}

/// Apply `migrations` but the first `applied`. On failure: the name of the one that failed; the database is as
/// the one before left it.
pub fn apply(
    connection: &mut Connection,
    migrations: &[Migration],
    applied: usize,
) -> Result<(), (&'static str, rusqlite::Error)> {
    for (index, migration) in migrations.iter().enumerate().skip(applied) {
        let step = |connection: &mut Connection| -> rusqlite::Result<()> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute_batch(migration.sql)?;
            let version = i64::try_from(index + 1).unwrap_or(i64::MAX);
            transaction.pragma_update(None, "user_version", version)?;
            transaction.commit()
        };
        step(connection).map_err(|error| (migration.name, error))?;
        tracing::info!(migration = migration.name, "schema migrated");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judgement() {
        assert_eq!(judge(0, 0, true, 3), Found::Version(0));
        assert_eq!(judge(APPLICATION_ID, 3, false, 3), Found::Version(3));
        assert_eq!(judge(APPLICATION_ID, 4, false, 3), Found::Newer(4));
        for (application, version, empty) in [
            (0, 0, false),
            (0, 1, false),
            (7, 1, false),
            (APPLICATION_ID, 0, false),
            (APPLICATION_ID, -1, false),
        ] {
            assert_eq!(judge(application, version, empty, 3), Found::Foreign, "{application} {version}");
        }
    }

    #[test]
    fn a_failing_migration_leaves_the_one_before() {
        let migrations = [
            Migration { name: "one", sql: "CREATE TABLE a (x); INSERT INTO a VALUES (1);" },
            Migration { name: "two", sql: "CREATE TABLE b (x); INSERT INTO nowhere VALUES (1);" },
            Migration { name: "three", sql: "CREATE TABLE c (x);" },
        ];
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(apply(&mut connection, &migrations, 0).unwrap_err().0, "two");
        let version = |connection: &Connection| -> i64 {
            connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
        };
        assert_eq!(version(&connection), 1);
        let tables: String = connection
            .query_row("SELECT group_concat(name) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, "a");
        // Repaired, it goes on from there and does not do the first again.
        let repaired = [migrations[0], Migration { name: "two", sql: "CREATE TABLE b (x);" }, migrations[2]];
        apply(&mut connection, &repaired, 1).unwrap();
        assert_eq!(version(&connection), 3);
        let rows: i64 = connection.query_row("SELECT count(*) FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1);
    }
}
