//! Why a database is not opened.

use std::io;
use std::path::PathBuf;

/// Why a database was not opened. Nothing in it was changed, except by the migrations before the one that failed
/// ([`OpenError::Migration`]).
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another controller has it open.
    #[error("database {} is in use by another controller{}", path.display(),
        pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    InUse {
        /// The database.
        path: PathBuf,
        /// Its process, if known.
        pid: Option<u32>,
    },
    /// Its schema is from before the first release, and cannot be migrated.
    #[error("database {} has schema {found} of a controller from before the first release, which cannot be migrated: \
        start with a new state_dir, or move this file away, and enrol the nodes again", path.display())]
    Older {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
    },
    /// A newer controller has migrated it.
    #[error("database {} has schema {found}, but this controller knows only schemas up to {known}: \
        use the newer controller that wrote it, or a backup from before", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema known here.
        known: i64,
    },
    /// Not a database of an Anneal controller.
    #[error("{} is not a database of anneal-controller", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Its pages or rows contradict each other.
    #[error("database {} is damaged: {found}", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// The first finding of SQLite's integrity check.
        found: String,
    },
    /// Its secrets are encrypted with another key.
    #[error("the passwords in database {} are encrypted with another key than the one given", path.display())]
    WrongKey {
        /// The database.
        path: PathBuf,
    },
    /// A migration failed.
    #[error("database {}: migration {name} failed", path.display())]
    Migration {
        /// The database.
        path: PathBuf,
        /// The migration.
        name: &'static str,
        /// The cause.
        source: rusqlite::Error,
    },
    /// The log of certificates could not be completed.
    #[error("database {}", path.display())]
    CertificateLog {
        /// The database.
        path: PathBuf,
        /// The cause.
        source: store::StoreError,
    },
    /// The file system refused.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// SQLite refused.
    #[error("database {}", path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
}

impl OpenError {
    /// Whether there is no room on the disk.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Sqlite { source, .. } | Self::Migration { source, .. } => {
                source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
            }
            Self::Io { source, .. } => source.kind() == io::ErrorKind::StorageFull,
            _ => false,
        }
    }
}
