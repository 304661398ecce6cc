//! The store of a test: in memory, unless `API_STORE` says `sqlite` or `postgres`.
//!
//! A PostgreSQL server serves all tests of the process that run at the same time. Each has a database of its own there: a copy of
//! one that was migrated once, or one that a test before it has left, which is emptied. To make one takes a hundred times as long.

use postgres_server::{Durability, Server};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use store::Store;
use store::memory::MemoryStore;
use store_postgres::{PostgresStore, Settings};
use store_sqlite::{DatabaseKey, SqliteStore};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// Says which store the tests use.
const VARIABLE: &str = "API_STORE";

/// Which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    Memory,
    Sqlite,
    Postgres,
}

impl StoreKind {
    /// The one that the environment asks for. A test whose clock is paused has its store in memory: its time would run away
    /// while it waits for an answer of PostgreSQL.
    pub fn asked() -> Option<Self> {
        let kind = match std::env::var(VARIABLE).ok()?.as_str() {
            "memory" => Self::Memory,
            "sqlite" => Self::Sqlite,
            "postgres" => Self::Postgres,
            other => panic!("{VARIABLE}={other}: memory, sqlite or postgres"),
        };
        Some(if is_paused() { Self::Memory } else { kind })
    }
}

fn is_paused() -> bool {
    let before = tokio::time::Instant::now();
    std::thread::sleep(Duration::from_millis(1));
    before.elapsed().is_zero()
}

/// What is removed when the test has ended.
pub enum Place {
    Memory,
    Directory { _dir: TempDir },
    Database { server: Arc<Prepared>, name: String },
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Self::Database { server, name } = self {
            server.free().push(std::mem::take(name));
        }
    }
}

/// A new store, and the place where it is; that is to be dropped after the store.
pub fn make(kind: StoreKind) -> (Arc<dyn Store>, Place) {
    match kind {
        StoreKind::Memory => (Arc::new(MemoryStore::new()), Place::Memory),
        StoreKind::Sqlite => {
            let dir = tempfile::tempdir().expect("a directory");
            let key = DatabaseKey::generate().expect("a key");
            let store = SqliteStore::open(&dir.path().join("db"), &key).expect("a database");
            (Arc::new(store), Place::Directory { _dir: dir })
        }
        StoreKind::Postgres => {
            let server = Prepared::shared();
            let name = server.database();
            let store = open(&server.server.url(&name), &server.key);
            (Arc::new(store), Place::Database { server, name })
        }
    }
}

/// The migrated database.
const TEMPLATE: &str = "template";

/// Ends what a test before has left running, and deletes all that it stored; triggers, which guard rows or delete others, are off.
const EMPTY: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend';
    SET session_replication_role = replica;
    DO $$ DECLARE name text; BEGIN
        FOR name IN SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
            AND relname NOT IN ('anneal_schema', 'secret_key')
        LOOP EXECUTE format('DELETE FROM %I', name); END LOOP;
    END $$";

/// A server with the template.
pub struct Prepared {
    server: Server,
    key: DatabaseKey,
    /// Databases that no test uses any more.
    free: Mutex<Vec<String>>,
}

impl Prepared {
    fn free(&self) -> MutexGuard<'_, Vec<String>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty database, by its name.
    fn database(&self) -> String {
        let free = self.free().pop();
        free.inspect(|name| drop(self.server.sql(name, EMPTY))).unwrap_or_else(|| self.server.copy(TEMPLATE))
    }

    /// That of the tests that run at the moment.
    fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Prepared>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Server::start(Durability::None);
            let key = DatabaseKey::generate().expect("a key");
            server.sql("postgres", &format!("CREATE DATABASE {TEMPLATE}"));
            drop(open(&server.url(TEMPLATE), &key));
            let server = Arc::new(Self { server, key, free: Mutex::default() });
            *shared = Arc::downgrade(&server);
            server
        })
    }
}

/// Open a database from code that is not asynchronous. What the store leaves running goes on in a runtime that no test ends.
fn open(url: &str, key: &DatabaseKey) -> PostgresStore {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
    });
    let settings = Settings::at(url);
    let opened = std::thread::scope(|scope| {
        // A runtime cannot be waited for on a thread of another.
        scope.spawn(|| RUNTIME.block_on(PostgresStore::open(&settings, key))).join()
    });
    opened.expect("it does not panic").expect("a database of this server")
}
