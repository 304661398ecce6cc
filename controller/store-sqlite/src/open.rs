//! Opening the file: lock it, check whose it is, and only then change it.

use crate::check;
use crate::functions;
use crate::lock::Lock;
use crate::migrate::{self, Found, Migration};
use crate::open_error::OpenError;
use crate::path::resolve;
use crate::secrets;
use crate::sql::certificate;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use stored_secrets::DatabaseKey;

/// Pages in the log after which a commit copies them into the database: 16 MiB. A page that many commits changed is copied once,
/// and the disk waited for once, however large the log is.
const CHECKPOINT_PAGES: i64 = 4000;

/// Memory for pages of the connection that writes: a write touches some twenty indexes, each in many places.
const WRITER_CACHE_KIB: i64 = 16 << 10;

/// How long a statement waits for a lock of another connection (only recovery and checkpoints take any).
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Statements that a connection keeps prepared.
const STATEMENTS: usize = 64;

/// Connections that read.
const READERS: usize = 4;
/// Connections that read for clients without any right; see [`crate::SqliteStore::for_agents`].
const AGENT_READERS: usize = 2;

/// An opened database.
pub struct Opened {
    pub writer: Connection,
    pub readers: Vec<Connection>,
    pub agent_readers: Vec<Connection>,
    pub lock: Lock,
}

/// Open or create the database at `path`, whose directory must exist, and apply the `migrations` it lacks.
pub fn open(path: &Path, key: &DatabaseKey, migrations: &[Migration]) -> Result<Opened, OpenError> {
    let path = resolve(path)?;
    let lock = Lock::take(&path)?;
    create(&path)?;

    let sqlite = |source| match source {
        rusqlite::Error::SqliteFailure(error, _) if error.code == ErrorCode::NotADatabase => {
            OpenError::Foreign { path: path.clone() }
        }
        source if check::is_damage(&source) => {
            OpenError::Damaged { path: path.clone(), found: source.to_string() }
        }
        source => OpenError::Sqlite { path: path.clone(), source },
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut writer = Connection::open_with_flags(&path, flags).map_err(sqlite)?;
    writer.busy_timeout(BUSY_TIMEOUT).map_err(sqlite)?;
    let applied = match migrate::inspect(&writer, migrations.len()).map_err(sqlite)? {
        Found::Applied(applied) => applied,
        Found::Older(found) => return Err(OpenError::Older { path, found }),
        Found::Newer(found) => {
            return Err(OpenError::Newer { path, found, known: migrate::version(migrations.len()) });
        }
        Found::Foreign => return Err(OpenError::Foreign { path }),
    };
    tighten(&path)?;
    prepare(&writer).map_err(sqlite)?;
    migrate::apply(&mut writer, migrations, applied).map_err(|(name, source)| OpenError::Migration {
        path: path.clone(),
        name,
        source,
    })?;
    if !secrets::prepare(&mut writer, key).map_err(sqlite)? {
        return Err(OpenError::WrongKey { path });
    }
    check::at_start(&writer).map_err(sqlite)?;
    // Not before: the check reads every page once.
    writer.pragma_update(None, "cache_size", -WRITER_CACHE_KIB).map_err(sqlite)?;

    let log = |source| OpenError::CertificateLog { path: path.clone(), source };
    let change = writer.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sqlite)?;
    certificate::complete_log(&change).map_err(log)?;
    change.commit().map_err(sqlite)?;

    let reader = || -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = Connection::open_with_flags(&path, flags)?;
        reader.busy_timeout(BUSY_TIMEOUT)?;
        reader.set_prepared_statement_cache_capacity(STATEMENTS);
        secrets::add_to(&reader, key)?;
        functions::add_to(&reader)?;
        Ok(reader)
    };
    let pool = |count| (0..count).map(|_| reader()).collect::<rusqlite::Result<Vec<_>>>();
    let (readers, agent_readers) = (pool(READERS).map_err(sqlite)?, pool(AGENT_READERS).map_err(sqlite)?);
    Ok(Opened { writer, readers, agent_readers, lock })
}

/// WAL, so that readers and the writer do not wait for each other; FULL, so that each commit is on the disk
/// before it is acknowledged (with NORMAL a power cut would lose the last ones).
fn prepare(writer: &Connection) -> rusqlite::Result<()> {
    writer.pragma_update(None, "journal_mode", "WAL")?;
    writer.pragma_update(None, "synchronous", "FULL")?;
    writer.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    writer.pragma_update(None, "foreign_keys", "ON")?;
    writer.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}

/// An empty file where there is none, never readable by others even for a moment.
fn create(path: &Path) -> Result<(), OpenError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(OpenError::Io { path: path.to_owned(), source }),
    }
}

/// Mode 0600: the database holds passwords of BMCs and tokens of agents. SQLite gives new companion files the
/// mode of the database; old ones are set here.
fn tighten(path: &Path) -> Result<(), OpenError> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let file = PathBuf::from(name);
        match std::fs::set_permissions(&file, Permissions::from_mode(0o600)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(OpenError::Io { path: file, source }),
            Ok(()) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_acknowledged_is_on_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let opened =
            open(&dir.path().join("a.db"), &DatabaseKey::generate().unwrap(), crate::migrate::MIGRATIONS)
                .unwrap();
        let pragma = |name: &str| -> String {
            opened
                .writer
                .query_row(&format!("SELECT lower({name}) FROM pragma_{name}"), [], |row| row.get(0))
                .unwrap()
        };
        assert_eq!(pragma("journal_mode"), "wal");
        assert_eq!(pragma("synchronous"), "2", "FULL");
        assert_eq!(pragma("foreign_keys"), "1");
        // Built with the flags of .cargo/config.toml, one of which SQLite does not list: that it waits with fdatasync.
        let built = "SELECT sqlite_compileoption_used('STMTJRNL_SPILL=131000')";
        assert!(opened.writer.query_row(built, [], |row| row.get::<_, bool>(0)).unwrap());
        let mut readers = opened.readers.iter().chain(&opened.agent_readers);
        assert!(readers.all(|reader| reader.is_readonly("main").unwrap()));
    }
}
