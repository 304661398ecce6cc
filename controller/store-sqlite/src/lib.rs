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
mod resources;
mod sql;
mod writer;

use migrate::{MIGRATIONS, Migration};
pub use open_error::OpenError;
use readers::Readers;
use std::path::Path;
use store::Bell;
pub use writer::WRITER;
use writer::Writer;

/// A [`Store`](store::Store) in a file. Needs a tokio runtime; dropping it waits for the writes under way.
pub struct SqliteStore {
    readers: Readers,
    writer: Writer,
    bell: Bell,
}

impl SqliteStore {
    /// Open the database at `path`, or create it (mode 0600; the directory must exist), and migrate it to the
    /// newest schema. Blocks; meant for start-up.
    pub fn open(path: &Path) -> std::result::Result<Self, OpenError> {
        Self::open_with(path, MIGRATIONS)
    }

    fn open_with(path: &Path, migrations: &[Migration]) -> std::result::Result<Self, OpenError> {
        let opened = open::open(path, migrations)?;
        let bell = Bell::new();
        let writer = Writer::spawn(opened.writer, bell.clone(), opened.lock)
            .map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
        Ok(Self { readers: Readers::new(opened.readers), writer, bell })
    }
}
