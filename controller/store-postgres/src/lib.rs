//! The store in a PostgreSQL database, which several controllers may use at once.
//!
//! ```text
//!   PostgresStore ── write ──▶ database.rs: a transaction, tried again in this one place; change.rs: COMMIT with its NOTIFY
//!        │                          │ sql/: the statements of each noun, which lock what they compare
//!        ├──────── read ───▶ a pool of connections; another for agents and boot
//!        └──────── bell ◀─── listen.rs: a connection that hears what other controllers wrote
//! ```
//!
//! Invariants: what a write compares (a version, a lease, a token, the last number of a chain) is locked by its transaction
//! before it is compared, or compared by the statement that writes; columns are computed by one function from what the document
//! holds (columns.rs); no work is done again that may have been committed; no SQL outside this crate; no message quotes a
//! document or the password.

mod address;
mod agents;
mod change;
mod columns;
mod conductor;
mod connect;
mod database;
mod discovery;
mod document;
mod events;
mod failure;
#[cfg(debug_assertions)]
mod fault;
mod import;
mod listen;
mod migrate;
mod nodes;
mod open;
mod open_error;
#[cfg(test)]
mod released_schemas;
mod resources;
mod ring;
mod secrets;
mod sql;
mod text;
mod value;

pub use address::Settings;
use database::Database;
use listen::Listener;
use migrate::{MIGRATIONS, Migration};
use open::Opened;
pub use open_error::OpenError;
pub use secrets::{are_encrypted, forget, is_in_use};
use std::sync::Arc;
use store::StoreError;
pub use stored_secrets::{DatabaseKey, RemovedSecrets};

/// A [`Store`](store::Store) in a PostgreSQL database. Needs a tokio runtime.
pub struct PostgresStore {
    database: Database,
    agent_database: Database,
    key: DatabaseKey,
    /// Hears the other controllers as long as a clone of the store lives.
    listener: Arc<Listener>,
}

impl PostgresStore {
    /// Open a database and migrate it to the newest schema. Its secrets are encrypted with `key`.
    ///
    /// # Errors
    /// It cannot be reached, does not work as the store needs, is of another program or of a newer version, or is encrypted with
    /// another key.
    pub async fn open(settings: &Settings, key: &DatabaseKey) -> Result<Self, OpenError> {
        Self::open_with(settings, key, MIGRATIONS).await
    }

    async fn open_with(
        settings: &Settings,
        key: &DatabaseKey,
        migrations: &[Migration],
    ) -> Result<Self, OpenError> {
        let Opened { database, agent_database, listener } = open::open(settings, key, migrations).await?;
        Ok(Self { database, agent_database, key: key.clone(), listener: Arc::new(listener) })
    }

    /// A number that grows with each lease that is given; of a database that was restored from a backup it is as it was then.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn last_epoch(&self) -> Result<u64, StoreError> {
        self.database.read(|client, _| Box::pin(sql::lease::last_number(client))).await
    }

    /// Make that at least `to`, so that no epoch is given that was given after the backup.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn raise_epochs(&self, to: u64) -> Result<(), StoreError> {
        self.database.write(|change, _| Box::pin(sql::lease::raise(change, to))).await
    }

    /// The same store for the listeners of agents and of boot, which everybody on the nodes' network reaches. It has connections
    /// of its own: however many requests wait for one of them, operators and the conductor do not.
    pub fn for_agents(&self) -> Self {
        let database = self.agent_database.clone();
        Self {
            agent_database: database.clone(),
            database,
            key: self.key.clone(),
            listener: self.listener.clone(),
        }
    }
}
