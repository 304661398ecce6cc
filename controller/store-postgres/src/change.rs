//! One transaction on its way: statements, the nodes to ring for, and how it ends.
//!
//! A lock of the whole database is taken by the last statements, which are sent together with the COMMIT ([`LastStatement`]). Else a
//! controller that is frozen between two statements would keep it, and after that each of its other transactions that wait for
//! it, 5 s each (`idle_in_transaction_session_timeout`); meanwhile the other controllers wait with all their connections.

use crate::failure::Failure;
use crate::ring::{Ring, StoreId};
use crate::value::Value;
use deadpool_postgres::{Client, Object};
use futures_util::future::join3;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// Parameters of a statement.
pub type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The rows of a statement, which the connection keeps prepared.
pub async fn rows(client: &Client, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Failure> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.query(&statement, params).await?)
}

/// The last statement of a transaction, which needs a lock of the whole database.
pub struct LastStatement {
    /// Takes the lock, until the transaction ends.
    pub lock: &'static str,
    /// Sees what every transaction before it under the lock has committed.
    pub sql: &'static str,
    /// Its parameters.
    pub values: Vec<Value>,
    /// What it does, for an error.
    pub doing: String,
}

impl LastStatement {
    async fn commit(self, client: &Client) -> Result<(), Failure> {
        self.send(client).await.map_err(|error| Failure::from(error).during(&self.doing))
    }

    /// Send both statements and the COMMIT without waiting for an answer in between. After a statement that fails, PostgreSQL takes the
    /// COMMIT for a ROLLBACK.
    async fn send(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        let lock = client.prepare_cached(self.lock).await?;
        let statement = client.prepare_cached(self.sql).await?;
        let params: Vec<_> = self.values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        // Each is sent when it is polled first: in this order.
        let (locking, doing) = (client.query(&lock, &[]), client.execute(&statement, &params));
        let committing = client.batch_execute("COMMIT");
        let (locked, done, committed) = join3(locking, doing, committing).await;
        locked?;
        done?;
        committed
    }
}

/// A transaction. Dropped before its end, it closes its connection, so the server undoes it.
pub struct Change {
    /// None once the transaction has ended.
    client: Option<Client>,
    rings: Vec<Ring>,
    last: Option<LastStatement>,
    /// Whether its commit is one that the fault points count.
    #[cfg(debug_assertions)]
    counts: std::sync::atomic::AtomicBool,
}

/// What PostgreSQL knows a transaction by, to ask later whether it was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionId {
    /// Its number.
    pub xid: String,
    /// The history that the number is of: another server that takes over gives the same numbers to others.
    pub timeline: String,
}

/// How the commit ended.
pub enum Commit {
    /// It is on the disk.
    Done,
    /// PostgreSQL undid it.
    Undone(Failure),
    /// The connection was lost before the answer came.
    NoAnswer(Failure),
}

impl Change {
    /// Begin on this connection.
    pub async fn begin(client: Client, mode: &str) -> Result<Self, Failure> {
        let change = Self {
            client: Some(client),
            rings: Vec::new(),
            last: None,
            #[cfg(debug_assertions)]
            counts: false.into(),
        };
        change.client()?.batch_execute(mode).await?;
        Ok(change)
    }

    fn client(&self) -> Result<&Client, Failure> {
        self.client.as_ref().ok_or_else(Failure::ended)
    }

    /// Ring for `node` with the commit.
    pub fn ring(&mut self, node: Uuid) {
        self.rings.push(Ring::Changed(node));
    }

    /// Ring for those that wait for the node to be unlocked.
    pub fn released(&mut self, node: Uuid) {
        self.rings.push(Ring::Released(node));
    }

    /// End with this statement; a transaction has one.
    pub fn end_with(&mut self, last: LastStatement) {
        debug_assert!(self.last.is_none(), "a transaction has one last statement");
        #[cfg(debug_assertions)]
        self.note(last.sql, true);
        self.last = Some(last);
    }

    /// Whom this transaction rings for.
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// The rows of a statement, which the connection keeps prepared.
    pub async fn query(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Failure> {
        let rows = rows(self.client()?, sql, params).await?;
        #[cfg(debug_assertions)]
        self.note(sql, !rows.is_empty());
        Ok(rows)
    }

    /// The only row, if there is one.
    pub async fn query_opt(&self, sql: &str, params: Params<'_>) -> Result<Option<Row>, Failure> {
        Ok(self.query(sql, params).await?.pop())
    }

    /// How many rows a statement changed.
    pub async fn execute(&self, sql: &str, params: Params<'_>) -> Result<u64, Failure> {
        let client = self.client()?;
        let statement = client.prepare_cached(sql).await?;
        let changed = client.execute(&statement, params).await?;
        #[cfg(debug_assertions)]
        self.note(sql, changed > 0);
        Ok(changed)
    }

    /// A statement was executed that changed a row, or returned one.
    #[cfg(debug_assertions)]
    fn note(&self, sql: &str, did: bool) {
        if did && crate::fault::counts(sql) {
            self.counts.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// The rows of a statement that is planned for these values and not kept: of lists, each of which is another one.
    pub async fn query_once(&self, sql: &str, values: &[crate::value::Value]) -> Result<Vec<Row>, Failure> {
        let typed: Vec<_> =
            values.iter().map(|value| (value as &(dyn ToSql + Sync), value.sql_type())).collect();
        Ok(self.client()?.query_typed(sql, &typed).await?)
    }

    /// Statements without parameters.
    pub async fn batch(&self, sql: &str) -> Result<(), Failure> {
        Ok(self.client()?.batch_execute(sql).await?)
    }

    /// Send the rings within the transaction, so that others hear them if and when it is committed; what it is known by.
    pub async fn notify(&self, store: StoreId) -> Result<TransactionId, Failure> {
        const NOTIFY: &str =
            "SELECT pg_current_xact_id()::text, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
            (SELECT count(pg_notify('anneal', ring)) FROM unnest($1::text[]) ring)";
        let texts: Vec<String> = self.rings.iter().map(|ring| ring.payload(store)).collect();
        let row = self.query_opt(NOTIFY, &[&texts]).await?.ok_or_else(Failure::ended)?;
        Ok(TransactionId { xid: row.try_get(0)?, timeline: row.try_get(1)? })
    }

    /// Commit. The connection goes back to its pool if that succeeds: else the transaction may still be open.
    pub async fn commit(mut self) -> Commit {
        let Some(client) = self.client.take() else { return Commit::Undone(Failure::ended()) };
        #[cfg(debug_assertions)]
        let number = match self.counts.load(std::sync::atomic::Ordering::Relaxed) {
            true => Some(crate::fault::before_commit().await),
            false => None,
        };
        let committed = match self.last.take() {
            Some(last) => last.commit(&client).await,
            None => client.batch_execute("COMMIT").await.map_err(Failure::from),
        };
        if committed.is_err() {
            drop(Object::take(client));
        }
        match committed {
            Ok(()) => {
                #[cfg(debug_assertions)]
                number.inspect(|number| crate::fault::after_commit(*number));
                Commit::Done
            }
            Err(failure) if failure.is_lost() => Commit::NoAnswer(failure),
            Err(failure) => Commit::Undone(failure),
        }
    }

    /// Undo everything. The connection goes back to its pool.
    pub async fn roll_back(mut self) {
        if let Some(client) = self.client.take()
            && client.batch_execute("ROLLBACK").await.is_err()
        {
            drop(Object::take(client));
        }
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            drop(Object::take(client));
        }
    }
}
