//! The store in one SQLite file.
//!
//! ```text
//!   SqliteStore ── write ──▶ writer.rs: one thread, the only connection that writes; group commit
//!        │                        │ sql/: the SQL of each noun
//!        │                        ▼ what it wrote, after the commit
//!        ├──────── read ───▶ node_cache.rs: nodes, contacts and leases as they are committed
//!        └──────── read ───▶ readers.rs: a few read-only connections, WAL snapshots; others for agents and boot
//! ```
//!
//! Invariants: an acknowledged write is on the disk (`synchronous=FULL`); columns are computed from the
//! documents by SQLite and cannot disagree with them; no SQL outside this crate; no message quotes a document.

mod agents;
pub mod backup;
#[cfg(test)]
mod cache_tests;
mod check;
mod conductor;
mod discovery;
mod document;
mod events;
#[cfg(debug_assertions)]
mod fault;
mod functions;
mod lock;
mod log_space;
mod migrate;
mod node_cache;
mod nodes;
mod open;
mod open_error;
mod path;
mod readers;
#[cfg(test)]
mod released_schemas;
mod reserve;
mod resources;
mod secrets;
mod sql;
mod writer;
mod written;

use migrate::{MIGRATIONS, Migration};
use node_cache::{Cached, NodeCache, Reading};
pub use open_error::OpenError;
use readers::Readers;
use reserve::Reserve;
use rusqlite::Connection;
pub use secrets::{are_encrypted, forget};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use store::{Bell, Result};
pub use stored_secrets::{DatabaseKey, RemovedSecrets};
use uuid::Uuid;
pub use writer::WRITER;
use writer::{Change, Writer};

/// Bytes of nodes and their contacts that are kept in memory, unless [`SqliteStore::limit_cache`] says otherwise.
const CACHE_BYTES: usize = 96 << 20;

/// A [`Store`](store::Store) in a file. Needs a tokio runtime; dropping it waits for the writes under way.
pub struct SqliteStore {
    readers: Readers,
    agent_readers: Readers,
    writer: Arc<Writer>,
    cache: Arc<NodeCache>,
    bell: Bell,
    reserve: Reserve,
    path: PathBuf,
    /// Why nothing is written any more.
    damage: Arc<OnceLock<String>>,
}

impl SqliteStore {
    /// Open the database at `path`, or create it (mode 0600; the directory must exist), and migrate it to the
    /// newest schema. Its secrets are encrypted with `key`; those of a database that has no key yet are encrypted now.
    /// Blocks; meant for start-up.
    ///
    /// # Errors
    /// The file is in use, of another program or a newer version, damaged, or encrypted with another key.
    pub fn open(path: &Path, key: &DatabaseKey) -> std::result::Result<Self, OpenError> {
        Self::open_with(path, key, MIGRATIONS)
    }

    fn open_with(
        path: &Path,
        key: &DatabaseKey,
        migrations: &[Migration],
    ) -> std::result::Result<Self, OpenError> {
        let reserve = Reserve::of(path);
        let opened = match open::open(path, key, migrations) {
            Err(OpenError::Sqlite { source, .. })
                if reserve::is_full_sqlite(&source) && reserve.release() =>
            {
                open::open(path, key, migrations)?
            }
            opened => opened?,
        };
        reserve.fill();
        let bell = Bell::new();
        let damage = Arc::new(OnceLock::new());
        let cache = NodeCache::new(CACHE_BYTES);
        let writer = Writer::spawn(opened.writer, bell.clone(), cache.clone(), damage.clone(), opened.lock)
            .map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
        let (readers, agent_readers) = (Readers::new(opened.readers), Readers::new(opened.agent_readers));
        let (writer, path) = (Arc::new(writer), path.to_owned());
        Ok(Self { readers, agent_readers, writer, cache, bell, reserve, path, damage })
    }

    /// The same store for the listeners of agents and of boot, which everybody on the nodes' network reaches. It reads through
    /// connections of its own: however many requests wait for one of them, operators and the conductor do not.
    pub fn for_agents(&self) -> Self {
        let readers = self.agent_readers.clone();
        Self {
            agent_readers: readers.clone(),
            readers,
            writer: self.writer.clone(),
            cache: self.cache.clone(),
            bell: self.bell.clone(),
            reserve: self.reserve.clone(),
            path: self.path.clone(),
            damage: self.damage.clone(),
        }
    }

    /// The largest epoch of a lease that was given.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn last_epoch(&self) -> Result<u64> {
        self.readers.read(sql::lease::last_epoch).await
    }

    /// Give no epoch up to this one any more: the database was restored from a backup, and newer ones were given since.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn raise_epochs(&self, to: u64) -> Result<()> {
        self.writer.write(move |change| sql::lease::raise_epochs(change, to)).await
    }

    /// Check the whole database, for seconds for each GiB. After a finding nothing is written any more: every write would
    /// build on damaged data. Reads go on. Returns the finding.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn check(&self) -> std::result::Result<Option<String>, OpenError> {
        let path = self.path.clone();
        let look = tokio::task::spawn_blocking(move || check::first_fault(&path)).await;
        let found = look.map_err(|error| OpenError::Io {
            path: self.path.clone(),
            source: std::io::Error::other(error),
        })??;
        Ok(found.map(|found| self.damage.get_or_init(|| found).clone()))
    }

    /// Keep at most so many bytes of nodes and their contacts in memory, so that reading them parses nothing; 0: none.
    pub fn limit_cache(&self, bytes: usize) {
        self.cache.limit(bytes);
    }

    /// What `read` reads of each of these nodes, unless it is known.
    async fn of_each<T: Cached + Send + 'static>(
        &self,
        nodes: &[Uuid],
        read: fn(&Connection, &Reading, Uuid) -> Result<T>,
    ) -> Result<Vec<T>> {
        let known: Option<Vec<T>> = nodes.iter().map(|node| self.cache.get(*node)).collect();
        if let Some(known) = known {
            return Ok(known);
        }
        let (nodes, reading) = (nodes.to_vec(), self.cache.reading());
        let each = move |connection: &Connection| {
            nodes.into_iter().map(|node| read(connection, &reading, node)).collect()
        };
        self.readers.read(each).await
    }

    /// Make a change that deletes. On a full disk it is made with the space of the reserve.
    async fn delete<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Change<'_>) -> Result<T> + Clone + Send + 'static,
    ) -> Result<T> {
        let failed = match self.writer.write(work.clone()).await {
            Err(error) if reserve::is_full(&error) => error,
            done => return done,
        };
        if !self.on_reserve(Reserve::release).await {
            return Err(failed);
        }
        tracing::warn!("the disk is full; a delete uses the space that is reserved for it");
        let done = self.writer.write(work).await;
        self.on_reserve(|reserve| {
            reserve.fill();
            true
        })
        .await;
        done
    }

    /// Do something to the reserve on a thread that may block.
    async fn on_reserve(&self, work: fn(&Reserve) -> bool) -> bool {
        let reserve = self.reserve.clone();
        tokio::task::spawn_blocking(move || work(&reserve)).await.unwrap_or_default()
    }
}
