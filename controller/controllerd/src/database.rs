//! The database: a file in `state_dir`, or PostgreSQL's.

use crate::config::Config;
use crate::{database_check, database_key};
use anyhow::{Context, Result};
use std::path::Path;
use std::sync::Arc;
use store::Store;
use store_postgres::PostgresStore;
use store_sqlite::{DatabaseKey, OpenError, SqliteStore};

/// An opened database.
#[derive(Clone)]
pub enum Database {
    /// In one file, of this controller alone.
    Sqlite(Arc<SqliteStore>),
    /// In PostgreSQL, perhaps with other controllers.
    Postgres(Arc<PostgresStore>),
}

impl Database {
    /// Open the one that the configuration names.
    pub async fn open(config: &Config, key: &DatabaseKey) -> Result<Self> {
        if let Some(settings) = config.database.postgres()? {
            let opened = PostgresStore::open(&settings, key).await.map_err(refusal_of_postgres)?;
            return Ok(Self::Postgres(Arc::new(opened)));
        }
        let path = config.database_file();
        let opened = SqliteStore::open(&path, key).map_err(|error| refusal(error, &path))?;
        opened.limit_cache(config.node_cache_mib << 20);
        Ok(Self::Sqlite(Arc::new(opened)))
    }

    /// For operators and the conductor.
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => store.clone(),
            Self::Postgres(store) => store.clone(),
        }
    }

    /// For agents and boot.
    pub fn for_agents(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::new(store.for_agents()),
            Self::Postgres(store) => Arc::new(store.for_agents()),
        }
    }

    /// A number that grows with each lease that is given, and is as it was once a backup was restored.
    pub async fn last_epoch(&self) -> store::Result<u64> {
        match self {
            Self::Sqlite(store) => store.last_epoch().await,
            Self::Postgres(store) => store.last_epoch().await,
        }
    }

    /// Make that at least `to`.
    pub async fn raise_epochs(&self, to: u64) -> store::Result<()> {
        match self {
            Self::Sqlite(store) => store.raise_epochs(to).await,
            Self::Postgres(store) => store.raise_epochs(to).await,
        }
    }

    /// Check it in the background every `hours`; never returns. PostgreSQL checks its pages itself where its checksums are on.
    pub async fn check(self, hours: u32) -> Result<()> {
        match self {
            Self::Sqlite(store) => database_check::run(store, hours).await,
            Self::Postgres(_) => std::future::pending().await,
        }
    }
}

/// Why the file was not opened, and what to do.
fn refusal(error: OpenError, database: &Path) -> anyhow::Error {
    let advice = match &error {
        OpenError::WrongKey { .. } => database_key::advice(&database.display().to_string()),
        OpenError::Damaged { .. } => {
            "Restore a backup (anneal-controller restore FILE --replace), and check the disk".to_owned()
        }
        full if full.is_full() => "The disk is full: make room; the next start goes on".to_owned(),
        _ => return anyhow::Error::from(error).context(format!("database {}", database.display())),
    };
    anyhow::Error::from(error).context(advice)
}

/// The same of PostgreSQL.
pub fn refusal_of_postgres(error: store_postgres::OpenError) -> anyhow::Error {
    match &error {
        store_postgres::OpenError::WrongKey { name } => {
            let advice = database_key::advice(&format!("database {name}"));
            anyhow::Error::from(error).context(advice)
        }
        _ => anyhow::Error::from(error).context("database.url"),
    }
}

/// Refuses a command that is for the file alone.
pub fn file_only(config: &Config, instead: &str) -> Result<()> {
    let of_postgres = config.database.postgres().context("configuration")?.is_some();
    anyhow::ensure!(!of_postgres, "the database is PostgreSQL's (database.url): {instead}");
    Ok(())
}
