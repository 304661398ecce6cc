//! Schema versions. Migrations are applied in order, each in a transaction of its own that also sets
//! `user_version`, so a controller that dies in between continues where it was. A migration that has been
//! released is never edited. A change of the schema is a new migration, and comes with a fixture of the schema before
//! it (`released_schemas.rs`).

use rusqlite::{Connection, TransactionBehavior};

/// One step from a schema to the next.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Name of its file.
    pub name: &'static str,
    /// What it does.
    pub sql: &'static str,
}

/// Version of the schema that the first migration makes. Schemas 1 to 5 were never released.
const FIRST: i64 = 6;

/// All migrations.
pub const MIGRATIONS: &[Migration] = &[
    Migration { name: "0006_initial", sql: include_str!("../migrations/0006_initial.sql") },
    Migration { name: "0007_certificate_log", sql: include_str!("../migrations/0007_certificate_log.sql") },
    Migration { name: "0008_secret_key", sql: include_str!("../migrations/0008_secret_key.sql") },
    Migration { name: "0009_lists", sql: include_str!("../migrations/0009_lists.sql") },
    Migration { name: "0010_conductors", sql: include_str!("../migrations/0010_conductors.sql") },
    Migration { name: "0011_event_log", sql: include_str!("../migrations/0011_event_log.sql") },
    Migration { name: "0012_discovery", sql: include_str!("../migrations/0012_discovery.sql") },
];

/// `application_id` of our databases ("Annl"), set by the first migration.
pub const APPLICATION_ID: i64 = 0x416E_6E6C;

/// What a file is, found before anything in it is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Ours, or empty, with this many migrations applied.
    Applied(usize),
    /// Ours, with a schema from before the first migration.
    Older(i64),
    /// Ours, with a schema that this controller does not know.
    Newer(i64),
    /// Not ours.
    Foreign,
}

/// Version of the schema after the first `applied` migrations.
pub fn version(applied: usize) -> i64 {
    FIRST - 1 + i64::try_from(applied).unwrap_or(i64::MAX - FIRST)
}

/// Look at a database without changing it; `known` migrations are known.
pub fn inspect(connection: &Connection, known: usize) -> rusqlite::Result<Found> {
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(judge(application, version, tables == 0, known))
}

fn judge(application: i64, version: i64, empty: bool, known: usize) -> Found {
    match (application, version) {
        (0, 0) if empty => Found::Applied(0),
        (APPLICATION_ID, 1..FIRST) => Found::Older(version),
        (APPLICATION_ID, FIRST..) => match usize::try_from(version - FIRST) {
            Ok(index) if index < known => Found::Applied(index + 1),
            _ => Found::Newer(version),
        },
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
            transaction.pragma_update(None, "user_version", version(index + 1))?;
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
    fn a_database_is_recognized_by_its_id_and_version() {
        assert_eq!(judge(0, 0, true, 3), Found::Applied(0));
        assert_eq!(judge(APPLICATION_ID, 1, false, 3), Found::Older(1));
        assert_eq!(judge(APPLICATION_ID, 5, false, 3), Found::Older(5));
        assert_eq!(judge(APPLICATION_ID, 6, false, 3), Found::Applied(1));
        assert_eq!(judge(APPLICATION_ID, 8, false, 3), Found::Applied(3));
        assert_eq!(judge(APPLICATION_ID, 9, false, 3), Found::Newer(9));
        assert_eq!(judge(APPLICATION_ID, i64::MAX, false, 3), Found::Newer(i64::MAX));
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
        let stored = |connection: &Connection| -> i64 {
            connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
        };
        assert_eq!(stored(&connection), version(1));
        let tables: String = connection
            .query_row("SELECT group_concat(name) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, "a");
        // Repaired, it continues there and does not repeat the first.
        let repaired = [migrations[0], Migration { name: "two", sql: "CREATE TABLE b (x);" }, migrations[2]];
        apply(&mut connection, &repaired, 1).unwrap();
        assert_eq!(stored(&connection), version(3));
        let rows: i64 = connection.query_row("SELECT count(*) FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1);
    }
}
