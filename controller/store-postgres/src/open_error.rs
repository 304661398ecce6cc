//! Why a database is not opened.

use crate::failure::Failure;
use std::path::PathBuf;

/// Why a database was not opened. Nothing in it was changed, except by migrations before one that failed. No text has the
/// password in it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL cannot be read. It may hold a password, so it is not quoted.
    #[error(
        "the URL of the database is none of the form postgres://USER@HOST:PORT/DATABASE, with special characters \
        percent-encoded, and parameters of PostgreSQL behind a question mark"
    )]
    Url,
    /// A mode that would not find out who answers.
    #[error(
        "sslmode must be verify-full (with sslrootcert=FILE for an authority of your own), or disable: any other does not \
        find out who answers"
    )]
    SslMode,
    /// The file of authorities.
    #[error("certificates of authorities {}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// PostgreSQL cannot be reached, or refuses.
    #[error("database {name}")]
    Failed {
        /// The database.
        name: String,
        /// The cause.
        source: Failure,
    },
    /// It does not work as the store needs.
    #[error("database {name}: {why}")]
    Unfit {
        /// The database.
        name: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// There are tables of another program.
    #[error("database {name} has tables that are not of anneal-controller: give it a database of its own")]
    Foreign {
        /// The database.
        name: String,
    },
    /// A newer controller has migrated it, and taken away what this one uses.
    #[error(
        "database {name} has schema {found}, but this controller knows only schemas up to {known} and cannot use what it does \
        not know: use the newer controller that wrote it, or a backup from before"
    )]
    Newer {
        /// The database.
        name: String,
        /// Its schema.
        found: i64,
        /// The newest schema known here.
        known: i64,
    },
    /// A migration takes away what a controller that is alive still uses.
    #[error(
        "database {name}: migration {migration} cannot be made while controller {hostname} is alive, which knows only schemas up \
        to {knows} and must know {needs}: upgrade it first to a version between, or stop it and start again in ten seconds"
    )]
    OldController {
        /// The database.
        name: String,
        /// The migration.
        migration: &'static str,
        /// One that is alive.
        hostname: String,
        /// The newest schema that it knows.
        knows: i64,
        /// What it must know.
        needs: i64,
    },
    /// A migration failed.
    #[error("database {name}: migration {migration} failed")]
    Migration {
        /// The database.
        name: String,
        /// The migration.
        migration: &'static str,
        /// The cause.
        source: Failure,
    },
    /// Its secrets are encrypted with another key.
    #[error("the passwords in database {name} are encrypted with another key than the one given")]
    WrongKey {
        /// The database.
        name: String,
    },
    /// A controller uses it.
    #[error("database {name} is in use by a controller")]
    InUse {
        /// The database.
        name: String,
    },
}
