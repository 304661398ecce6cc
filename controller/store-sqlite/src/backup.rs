//! Copies of a database: one made while a controller writes, and one put in its place.

use crate::lock::Lock;
use crate::migrate::{self, Found, MIGRATIONS};
use crate::open_error::OpenError;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a statement waits for a lock of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Copy the database at `database` to the new file `to` (mode 0600), while a controller may write to it: the copy holds
/// everything whose write was acknowledged before this began. The copy is checked and is on the disk when this returns
/// its size in bytes. The database is not changed.
///
/// # Errors
/// `to` exists or cannot be written, `database` is missing or is not a controller's, or the copy is damaged.
pub fn backup(database: &Path, to: &Path) -> Result<u64, OpenError> {
    let source = open(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    known(database, &source)?;
    create(to)?;
    let copied = || -> Result<u64, OpenError> {
        let name = to.to_str().ok_or_else(|| file_error(to, io::ErrorKind::InvalidFilename.into()))?;
        source.execute("VACUUM INTO ?1", [name]).map_err(|source| sqlite_error(to, source))?;
        check(to)?;
        sync(to)
    };
    copied().inspect_err(|_| drop(std::fs::remove_file(to)))
}

/// Put the backup `from` in the place of the database at `database`. A database that is there already is kept: with
/// `replace` it is renamed, see [`kept_name`]; without, it is an error. The backup is not changed.
///
/// # Errors
/// A controller uses the database, it exists and `replace` is not set, or the backup is damaged or is not a controller's
/// of this version or an earlier one.
pub fn restore(from: &Path, database: &Path, replace: bool) -> Result<(), OpenError> {
    let database = &crate::path::resolve(database)?;
    let _lock = Lock::take(database)?;
    if database.exists() && !replace {
        return Err(file_error(database, io::ErrorKind::AlreadyExists.into()));
    }
    check(from)?;
    let new = suffixed(database, ".restoring");
    remove(&new)?;
    create(&new)?;
    std::fs::copy(from, &new).map_err(|source| file_error(&new, source))?;
    give_to_owner_of_directory(&new)?;
    sync(&new)?;
    // The newest writes may be in the -wal file: it belongs to the database, and goes where that goes.
    for suffix in ["-wal", "-shm", ""] {
        let old = suffixed(database, suffix);
        let kept = suffixed(&kept_name(database), suffix);
        match std::fs::rename(&old, &kept) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => remove(&kept)?,
            moved => moved.map_err(|source| file_error(&old, source))?,
        }
    }
    std::fs::rename(&new, database).map_err(|source| file_error(database, source))?;
    sync(database).map(drop)
}

/// Where [`restore`] keeps the database that it replaces.
pub fn kept_name(database: &Path) -> PathBuf {
    suffixed(database, ".replaced")
}

fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, OpenError> {
    std::fs::metadata(path).map_err(|source| file_error(path, source))?;
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|source| sqlite_error(path, source))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(|source| sqlite_error(path, source))?;
    Ok(connection)
}

/// Check that a database is a controller's, of a schema that this one knows.
fn known(path: &Path, connection: &Connection) -> Result<(), OpenError> {
    let path = || path.to_owned();
    let found = migrate::inspect(connection, MIGRATIONS.len());
    match found.map_err(|source| sqlite_error(&path(), source))? {
        Found::Applied(1..) => Ok(()),
        Found::Applied(0) | Found::Foreign => Err(OpenError::Foreign { path: path() }),
        Found::Older(found) => Err(OpenError::Older { path: path(), found }),
        Found::Newer(found) => {
            Err(OpenError::Newer { path: path(), found, known: migrate::version(MIGRATIONS.len()) })
        }
    }
}

/// Check every page, row and index of a copy.
fn check(path: &Path) -> Result<(), OpenError> {
    let copy = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    known(path, &copy)?;
    let found: String = copy
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .map_err(|source| sqlite_error(path, source))?;
    match found.as_str() {
        "ok" => Ok(()),
        _ => Err(OpenError::Damaged { path: path.to_owned(), found }),
    }
}

/// An empty file that only its owner can read.
fn create(path: &Path) -> Result<(), OpenError> {
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    created.map(drop).map_err(|source| file_error(path, source))
}

/// Root restores for the user of the controller, who owns the directory.
fn give_to_owner_of_directory(path: &Path) -> Result<(), OpenError> {
    let given = || -> io::Result<()> {
        let directory = std::fs::metadata(path.parent().unwrap_or(Path::new(".")))?;
        let file = std::fs::metadata(path)?;
        if (file.uid(), file.gid()) != (directory.uid(), directory.gid()) && file.uid() == 0 {
            std::os::unix::fs::chown(path, Some(directory.uid()), Some(directory.gid()))?;
        }
        Ok(())
    };
    given().map_err(|source| file_error(path, source))
}

fn remove(path: &Path) -> Result<(), OpenError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file_error(path, error)),
        _ => Ok(()),
    }
}

/// Bring a file and its name to the disk; its size.
fn sync(path: &Path) -> Result<u64, OpenError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = || -> io::Result<u64> {
        let file = File::open(path)?;
        file.sync_all()?;
        File::open(parent)?.sync_all()?;
        Ok(file.metadata()?.len())
    };
    synced().map_err(|source| file_error(path, source))
}

fn file_error(path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { path: path.to_owned(), source }
}

fn sqlite_error(path: &Path, source: rusqlite::Error) -> OpenError {
    match source {
        rusqlite::Error::SqliteFailure(error, _) if error.code == ErrorCode::NotADatabase => {
            OpenError::Foreign { path: path.to_owned() }
        }
        source => OpenError::Sqlite { path: path.to_owned(), source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteStore;
    use crate::secrets::test_key;
    use model::{Node, Timestamp};
    use std::collections::BTreeMap;
    use std::os::unix::fs::{FileExt, PermissionsExt};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use store::NodeStore;
    use uuid::Uuid;

    fn node(number: u32) -> Node {
        let mut node =
            Node::enrolled(Uuid::from_u128(number.into()), "fake-hardware", Timestamp(number.into()));
        node.name = Some(format!("n{number}"));
        node
    }

    /// Every row of every table, by table.
    fn rows(path: &Path) -> BTreeMap<String, Vec<String>> {
        let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let list = |sql: &str| -> Vec<String> {
            let mut statement = connection.prepare(sql).unwrap();
            let width = statement.column_count();
            let text = |row: &rusqlite::Row<'_>| {
                let cells = (0..width).map(|column| row.get_ref(column).map(|cell| format!("{cell:?}")));
                cells.collect::<rusqlite::Result<Vec<_>>>().map(|cells| cells.join("|"))
            };
            let mut found: Vec<_> = statement.query_map([], text).unwrap().map(Result::unwrap).collect();
            found.sort();
            found
        };
        let mut statement =
            connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
        let tables = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let tables = tables.map(Result::unwrap).filter(|name| name != "sqlite_sequence");
        tables.map(|name| (name.clone(), list(&format!("SELECT * FROM \"{name}\"")))).collect()
    }

    /// The copy is a state that the database had: all nodes up to one of those that were being created.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_backup_under_load_comes_back_row_by_row() {
        let dir = tempfile::tempdir().unwrap();
        let (database, file) = (dir.path().join("anneal.sqlite"), dir.path().join("copy"));
        let store = Arc::new(SqliteStore::open(&database, &test_key()).unwrap());
        for number in 0..200 {
            store.create_node(node(number), vec![]).await.unwrap();
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (writing, stopped) = (store.clone(), stop.clone());
        let load = tokio::spawn(async move {
            let mut number = 200;
            while !stopped.load(Ordering::Relaxed) {
                writing.create_node(node(number), vec![]).await.unwrap();
                number += 1;
            }
            number
        });
        while store.nodes().await.unwrap().len() < 210 {
            tokio::task::yield_now().await;
        }
        let (from, to) = (database.clone(), file.clone());
        let bytes = tokio::task::spawn_blocking(move || backup(&from, &to)).await.unwrap().unwrap();
        stop.store(true, Ordering::Relaxed);
        let created = load.await.unwrap();
        let metadata = std::fs::metadata(&file).unwrap();
        assert_eq!((metadata.len(), metadata.permissions().mode() & 0o777), (bytes, 0o600));

        assert!(matches!(restore(&file, &database, true), Err(OpenError::InUse { .. })));
        let nodes = store.nodes().await.unwrap();
        assert_eq!(nodes.len(), usize::try_from(created).unwrap());
        drop(store);
        let copied = rows(&file);
        assert!(matches!(restore(&file, &database, false), Err(OpenError::Io { .. })), "it is there");
        let before = rows(&database);
        restore(&file, &database, true).unwrap();
        assert_eq!(rows(&kept_name(&database)), before, "the replaced one is whole");
        assert_eq!(rows(&database), copied);
        let restored = SqliteStore::open(&database, &test_key()).unwrap().nodes().await.unwrap();
        assert!((210..=nodes.len()).contains(&restored.len()), "{}", restored.len());
        assert_eq!(restored, nodes[..restored.len()]);
        assert!(!suffixed(&database, ".restoring").exists());
    }

    /// A power cut leaves a log with the newest writes next to the database.
    #[tokio::test]
    async fn a_backup_takes_the_place_of_a_database_that_was_not_closed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let store = SqliteStore::open(&path("running"), &test_key()).unwrap();
        store.create_node(node(1), vec![]).await.unwrap();
        backup(&path("running"), &path("copy")).unwrap();
        store.create_node(node(2), vec![]).await.unwrap();
        for suffix in ["", "-wal"] {
            std::fs::copy(path(&format!("running{suffix}")), path(&format!("cut{suffix}"))).unwrap();
        }
        assert!(std::fs::metadata(path("cut-wal")).unwrap().len() > 0);
        restore(&path("copy"), &path("cut"), true).unwrap();
        assert!(!path("cut-wal").exists());
        let nodes = SqliteStore::open(&path("cut"), &test_key()).unwrap().nodes().await.unwrap();
        assert_eq!(nodes.len(), 1);
        let nodes = SqliteStore::open(&path("cut.replaced"), &test_key()).unwrap().nodes().await.unwrap();
        assert_eq!(nodes.len(), 2, "what was replaced is whole");
    }

    #[test]
    fn what_is_no_good_is_neither_written_nor_restored() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        drop(SqliteStore::open(&path("good"), &test_key()).unwrap());
        assert!(matches!(backup(&path("missing"), &path("copy")), Err(OpenError::Io { .. })));
        std::fs::write(path("text"), "x".repeat(9000)).unwrap();
        assert!(matches!(backup(&path("text"), &path("copy")), Err(OpenError::Foreign { .. })));
        assert!(!path("copy").exists());
        backup(&path("good"), &path("copy")).unwrap();
        let again = backup(&path("good"), &path("copy"));
        assert!(matches!(again, Err(OpenError::Io { .. })), "a backup is never overwritten");

        // A page of zeros within.
        std::fs::copy(path("copy"), path("damaged")).unwrap();
        let damaged = OpenOptions::new().write(true).open(path("damaged")).unwrap();
        damaged.write_all_at(&[0xa5; 4096], 8192).unwrap();
        for bad in ["damaged", "text", "missing"] {
            assert!(restore(&path(bad), &path("new"), false).is_err(), "{bad}");
            assert!(!path("new").exists(), "{bad}");
        }
        restore(&path("copy"), &path("new"), false).unwrap();
        assert_eq!(rows(&path("new")), rows(&path("good")));
    }
}
