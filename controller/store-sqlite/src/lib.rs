//! The store in one SQLite file.
//!
//! ```text
//!   SqliteStore ── write ──▶ writer.rs: one thread, the only connection that writes; group commit
//!        │                        │ sql/: the SQL of each noun
//!        └──────── read ───▶ readers.rs: a few read-only connections, WAL snapshots
//! ```
//!
//! Invariants: an acknowledged write is on the disk (`synchronous=FULL`); columns are computed from the
//! documents by SQLite and cannot disagree with them; no SQL outside this crate; no message quotes a document.

mod agents;
pub mod backup;
mod conductor;
mod document;
#[cfg(feature = "fault-points")]
mod fault;
mod lock;
mod migrate;
#[cfg(test)]
mod migration_tests;
mod nodes;
mod open;
mod open_error;
mod readers;
mod reserve;
mod resources;
mod sql;
mod writer;

use migrate::{MIGRATIONS, Migration};
pub use open_error::OpenError;
use readers::Readers;
use reserve::Reserve;
use std::path::Path;
use store::{Bell, Result};
pub use writer::WRITER;
use writer::{Change, Writer};

/// A [`Store`](store::Store) in a file. Needs a tokio runtime; dropping it waits for the writes under way.
pub struct SqliteStore {
    readers: Readers,
    writer: Writer,
    bell: Bell,
    reserve: Reserve,
}

impl SqliteStore {
    /// Open the database at `path`, or create it (mode 0600; the directory must exist), and migrate it to the
    /// newest schema. Blocks; meant for start-up.
    pub fn open(path: &Path) -> std::result::Result<Self, OpenError> {
        Self::open_with(path, MIGRATIONS)
    }

    fn open_with(path: &Path, migrations: &[Migration]) -> std::result::Result<Self, OpenError> {
        let reserve = Reserve::of(path);
        let opened = match open::open(path, migrations) {
            Err(OpenError::Sqlite { source, .. })
                if reserve::is_full_sqlite(&source) && reserve.release() =>
            {
                open::open(path, migrations)?
            }
            opened => opened?,
        };
        reserve.fill();
        let bell = Bell::new();
        let writer = Writer::spawn(opened.writer, bell.clone(), opened.lock)
            .map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
        Ok(Self { readers: Readers::new(opened.readers), writer, bell, reserve })
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
