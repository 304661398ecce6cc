//! The one thread that writes.
//!
//! ```text
//!  callers ──▶ channel ──▶ BEGIN · SAVEPOINT work RELEASE · SAVEPOINT work ROLLBACK TO · … · COMMIT (one fdatasync)
//!     ▲                                                                                        │
//!     └───────────────────────── bell, then each caller's own answer ◀─────────────────────────┘
//! ```
//!
//! While one transaction is written to the disk, further calls queue up, and all of them go into the next one: a
//! hundred heartbeats cost one sync of the log. Each has its own savepoint, so a rejected one changes nothing and does not
//! affect the others; a call that is alone has the transaction, and one that changes something in its last statement only
//! needs no savepoint: SQLite undoes a statement that fails. No call is answered before the commit; if it fails, every call in it returns that error, also
//! the rejected ones (the reason for the rejection may have been undone).

use crate::log_space;
use crate::node_cache::{Cached, NodeCache};
use crate::written::Written;
use rusqlite::{Connection, Transaction, TransactionBehavior, ffi};
use std::collections::HashSet;
use std::ops::Deref;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use store::{Bell, Cause, Result, StoreError};
use tokio::sync::oneshot;
use uuid::Uuid;

/// Name of the thread.
pub const WRITER: &str = "store-writer";

/// When nothing was to be written for so long, the cache of pages is given back; the first time, the space of the log is
/// written, too.
const IDLE: Duration = Duration::from_secs(1);

/// Most calls in one transaction; bounds how long the first of them waits.
const BATCH: usize = 512;

/// Handle of the writer. Dropping it waits until everything queued is written.
pub struct Writer {
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    damage: Arc<OnceLock<String>>,
    thread: Option<JoinHandle<()>>,
}

/// What a piece of work writes through: a savepoint of its own, the nodes to ring for once it is committed, and what the
/// cache gets then.
pub struct Change<'a> {
    connection: &'a Connection,
    rings: Vec<Uuid>,
    written: Vec<Written>,
    before: &'a Before<'a>,
}

/// What a piece of work finds: what is committed, and what earlier work in the same transaction wrote.
struct Before<'a> {
    cache: &'a NodeCache,
    written: HashSet<Uuid>,
    all_written: bool,
}

impl Change<'_> {
    /// Ring for `node` after the commit.
    pub fn ring(&mut self, node: Uuid) {
        self.rings.push(node);
    }

    /// Note what was written, for the cache.
    pub fn note(&mut self, written: Written) {
        self.written.push(written);
    }

    /// What the database has, if the cache knows it: not of a node that this transaction has written.
    pub fn known<T: Cached>(&self, node: Uuid) -> Option<T> {
        let is_of_node = |written: &Written| written.node().is_none_or(|other| other == node);
        if self.before.all_written
            || self.before.written.contains(&node)
            || self.written.iter().any(is_of_node)
        {
            return None;
        }
        self.before.cache.get(node)
    }
}

impl Deref for Change<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

/// A call on its way through the writer.
trait Job: Send {
    /// Whether nothing that it wrote stands when it is rejected, even without a savepoint.
    fn is_one_statement(&self) -> bool;
    /// Do the work; what it wrote. `None`: it was rejected, and what it did must be undone.
    fn run(&mut self, connection: &Connection, before: &Before<'_>) -> Option<Vec<Written>>;
    /// The transaction ended like this: ring and answer.
    fn settle(self: Box<Self>, committed: std::result::Result<(), Cause>, bell: &Bell);
}

struct Call<T, W> {
    is_one_statement: bool,
    work: Option<W>,
    outcome: Option<(Result<T>, Vec<Uuid>)>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, W> Job for Call<T, W>
where
    T: Send,
    W: FnOnce(&mut Change<'_>) -> Result<T> + Send,
{
    fn is_one_statement(&self) -> bool {
        self.is_one_statement
    }

    fn run(&mut self, connection: &Connection, before: &Before<'_>) -> Option<Vec<Written>> {
        let work = self.work.take()?;
        let mut change = Change { connection, rings: Vec::new(), written: Vec::new(), before };
        let outcome = work(&mut change);
        let Change { rings, written, .. } = change;
        let done = outcome.is_ok();
        self.outcome = Some((outcome, if done { rings } else { Vec::new() }));
        done.then_some(written)
    }

    fn settle(self: Box<Self>, committed: std::result::Result<(), Cause>, bell: &Bell) {
        let outcome = match (committed, self.outcome) {
            (Ok(()), Some((outcome, rings))) => {
                rings.into_iter().for_each(|node| bell.ring(node));
                outcome
            }
            (Ok(()), None) => Err(StoreError::failed("the work was not done")),
            (Err(cause), _) => {
                Err(StoreError::Failed { doing: "committing".to_owned(), source: Some(cause) })
            }
        };
        // A caller that has gone away does not want the answer; the change stands all the same.
        let _ = self.reply.send(outcome);
    }
}

impl Writer {
    /// Start the thread. Once `damage` is set, every write is refused. `lifetime` is dropped after the connection is closed.
    pub fn spawn(
        connection: Connection,
        bell: Bell,
        cache: Arc<NodeCache>,
        damage: Arc<OnceLock<String>>,
        lifetime: impl Send + 'static,
    ) -> std::io::Result<Self> {
        let (queue, calls) = mpsc::channel();
        let thread = std::thread::Builder::new().name(WRITER.to_owned()).spawn(move || {
            #[cfg(debug_assertions)]
            let connection = crate::fault::armed(connection);
            serve(connection, &calls, &cache, &bell);
            drop(lifetime);
        })?;
        Ok(Self { queue: Some(queue), damage, thread: Some(thread) })
    }

    /// As [`Writer::write`], and ring for `node` after the commit.
    pub async fn write_node<T: Send + 'static>(
        &self,
        node: Uuid,
        work: impl FnOnce(&mut Change<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.write(ringing(node, work)).await
    }

    /// As [`Writer::write_node`], for `work` whose last act is the only statement that writes.
    pub async fn write_node_in_one_statement<T: Send + 'static>(
        &self,
        node: Uuid,
        work: impl FnOnce(&mut Change<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.queue(true, ringing(node, work)).await
    }

    /// Queue `work` and wait until it is committed. It is done even if the future is dropped meanwhile.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Change<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.queue(false, work).await
    }

    async fn queue<T: Send + 'static>(
        &self,
        is_one_statement: bool,
        work: impl FnOnce(&mut Change<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let ended = || StoreError::failed("the writer thread has ended");
        if let Some(found) = self.damage.get() {
            return Err(StoreError::failed(format!(
                "the database is damaged ({found}): nothing is written until it is replaced by a backup \
                 (anneal-controller restore FILE --replace)"
            )));
        }
        let (reply, answer) = oneshot::channel();
        let call = Call { is_one_statement, work: Some(work), outcome: None, reply };
        self.queue.as_ref().ok_or_else(ended)?.send(Box::new(call)).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

/// `work`, and ring for `node` once it is committed.
fn ringing<T>(
    node: Uuid,
    work: impl FnOnce(&mut Change<'_>) -> Result<T>,
) -> impl FnOnce(&mut Change<'_>) -> Result<T> {
    move |change| {
        let done = work(change)?;
        change.ring(node);
        Ok(done)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's writer thread had panicked");
        }
    }
}

fn serve(mut connection: Connection, calls: &mpsc::Receiver<Box<dyn Job>>, cache: &NodeCache, bell: &Bell) {
    let (mut has_log_space, mut rests) = (false, false);
    loop {
        let first = match calls.recv_timeout(if rests { Duration::MAX } else { IDLE }) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => {
                if !has_log_space {
                    connection.path().map(Path::new).inspect(|path| log_space::fill(path));
                    has_log_space = true;
                }
                give_cache_back(&connection);
                rests = true;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        rests = false;
        let mut batch: Vec<_> = std::iter::once(first).chain(calls.try_iter().take(BATCH - 1)).collect();
        let committed = commit(&mut connection, &mut batch, cache).map_err(|error| -> Cause {
            tracing::error!(calls = batch.len(), %error, "a transaction failed");
            Arc::new(error)
        });
        for job in batch {
            job.settle(committed.clone(), bell);
        }
    }
}

/// SQLite keeps every page that a busy hour touched, up to the limit of its cache, for as long as the connection is open.
fn give_cache_back(connection: &Connection) {
    if let Err(error) = connection.execute_batch("PRAGMA shrink_memory") {
        tracing::warn!(%error, "the writer's cache of pages was not given back");
    }
}

fn commit(
    connection: &mut Connection,
    batch: &mut [Box<dyn Job>],
    cache: &NodeCache,
) -> rusqlite::Result<()> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut before = Before { cache, written: HashSet::new(), all_written: false };
    let mut written = Vec::new();
    if let [alone] = batch {
        match alone.run(&transaction, &before) {
            Some(wrote) => written = wrote,
            // SQLite may have undone all by itself.
            None if transaction.is_autocommit() => return Ok(()),
            None => return transaction.rollback(),
        }
    } else {
        for job in batch {
            let Some(wrote) = run_apart(&mut transaction, job.as_mut(), &before)? else { continue };
            before.written.extend(wrote.iter().filter_map(Written::node));
            before.all_written |= wrote.iter().any(|written| written.node().is_none());
            written.extend(wrote);
        }
    }
    #[cfg(debug_assertions)]
    crate::fault::before_commit();
    let published = cache.begin(written);
    transaction.commit()?;
    published.committed();
    #[cfg(debug_assertions)]
    crate::fault::after_commit();
    Ok(())
}

/// Run one of several jobs of a transaction. One that is rejected leaves nothing.
fn run_apart(
    transaction: &mut Transaction<'_>,
    job: &mut dyn Job,
    before: &Before<'_>,
) -> rusqlite::Result<Option<Vec<Written>>> {
    if job.is_one_statement() {
        let wrote = job.run(transaction, before);
        if transaction.is_autocommit() {
            // On a full disk SQLite undoes all by itself, what the others wrote, too.
            return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_ABORT_ROLLBACK), None));
        }
        return Ok(wrote);
    }
    let savepoint = transaction.savepoint()?;
    let Some(wrote) = job.run(&savepoint, before) else {
        // The default of a savepoint that is neither committed nor kept is to be rolled back.
        savepoint.finish()?;
        return Ok(None);
    };
    savepoint.commit()?;
    Ok(Some(wrote))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::failed;
    use model::Node;

    fn rows(writer: &Writer) -> impl Future<Output = Result<i64>> {
        writer.write(|change| {
            change.query_row("SELECT count(*) FROM child", [], |row| row.get(0)).map_err(failed("counting"))
        })
    }

    /// Work that holds the writer until the channel is sent to, so that what is queued meanwhile goes into one transaction: once it
    /// runs, its own is closed.
    async fn hold(writer: &Arc<Writer>) -> (mpsc::Sender<()>, tokio::task::JoinHandle<Result<()>>) {
        let (begin, begun) = oneshot::channel();
        let (open, gate) = mpsc::channel::<()>();
        let holder = writer.clone();
        let held = tokio::spawn(async move {
            let work = move |_: &mut Change<'_>| {
                let _ = begin.send(());
                gate.recv().map_err(failed("waiting"))
            };
            holder.write(work).await
        });
        begun.await.unwrap();
        (open, held)
    }

    /// The transaction fails at its very end, at COMMIT: every call in it returns the error, the bell does not ring,
    /// nothing is stored, and the writer continues.
    #[tokio::test]
    async fn a_failed_commit_is_heard_by_all_in_it() {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(
                "PRAGMA foreign_keys = ON;
                 CREATE TABLE parent (id INTEGER PRIMARY KEY);
                 CREATE TABLE child (parent REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);",
            )
            .unwrap();
        let bell = Bell::new();
        let mut ears = bell.listen();
        let writer =
            Arc::new(Writer::spawn(connection, bell, NodeCache::new(0), Arc::default(), ()).unwrap());

        let (open, held) = hold(&writer).await;
        let insert = |sql: &'static str| {
            let writer = writer.clone();
            async move {
                let work = move |change: &mut Change<'_>| {
                    change.ring(Uuid::nil());
                    change.execute(sql, []).map(drop).map_err(failed("inserting"))
                };
                writer.write(work).await
            }
        };
        let good = insert("INSERT INTO child VALUES (NULL)");
        let bad = insert("INSERT INTO child VALUES (7)");
        let refused = writer.write(|_| -> Result<()> { Err(StoreError::Stale(Uuid::nil())) });
        let (good, bad, refused, ()) = tokio::join!(biased; good, bad, refused, async {
            open.send(()).unwrap();
        });
        held.await.unwrap().unwrap();
        for outcome in [good, bad, refused] {
            let error = outcome.unwrap_err().chain();
            assert!(error.contains("FOREIGN KEY"), "{error}");
        }
        assert!(ears.try_recv().is_err(), "nothing was committed, so nothing rings");
        assert_eq!(rows(&writer).await.unwrap(), 0);

        insert("INSERT INTO child VALUES (NULL)").await.unwrap();
        assert!(ears.try_recv().is_ok());
        assert_eq!(rows(&writer).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn refused_work_is_undone() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE child (id);").unwrap();
        let bell = Bell::new();
        let mut ears = bell.listen();
        let writer = Writer::spawn(connection, bell, NodeCache::new(0), Arc::default(), ()).unwrap();
        let half = writer.write(|change| -> Result<()> {
            change.ring(Uuid::nil());
            change.execute("INSERT INTO child VALUES (1)", []).map_err(failed("inserting"))?;
            Err(StoreError::Stale(Uuid::nil()))
        });
        assert!(matches!(half.await, Err(StoreError::Stale(_))));
        assert_eq!(rows(&writer).await.unwrap(), 0);
        assert!(ears.try_recv().is_err());
    }

    /// A statement that fails is undone by SQLite, without a savepoint, and nothing else in the transaction is.
    #[tokio::test]
    async fn a_call_of_one_statement_fails_alone() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE child (id INTEGER CHECK (id < 10));").unwrap();
        let bell = Bell::new();
        let mut ears = bell.listen();
        let writer =
            Arc::new(Writer::spawn(connection, bell, NodeCache::new(0), Arc::default(), ()).unwrap());
        let (open, held) = hold(&writer).await;
        let insert = |sql: &'static str| {
            let work = move |change: &mut Change<'_>| change.execute(sql, []).map_err(failed("inserting"));
            writer.write_node_in_one_statement(Uuid::nil(), work)
        };
        let (first, bad, last, ()) = tokio::join!(
            biased;
            insert("INSERT INTO child VALUES (1)"),
            // The first two rows are written before the third is refused.
            insert("INSERT INTO child VALUES (2), (3), (10)"),
            insert("INSERT INTO child VALUES (4)"),
            async { open.send(()).unwrap() },
        );
        held.await.unwrap().unwrap();
        assert_eq!((first.unwrap(), last.unwrap()), (1, 1));
        let why = bad.unwrap_err().chain();
        assert!(why.contains("CHECK"), "{why}");
        assert_eq!(rows(&writer).await.unwrap(), 2, "nothing of the refused one is there");
        assert_eq!(
            (ears.try_recv().is_ok(), ears.try_recv().is_ok(), ears.try_recv().is_ok()),
            (true, true, false)
        );
    }

    /// Where SQLite undoes the whole transaction by itself, as on a full disk, none of its calls is answered as if it were written.
    #[tokio::test]
    async fn when_the_transaction_is_undone_all_in_it_hear_of_it() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE child (id INTEGER CHECK (id < 10));").unwrap();
        let writer =
            Arc::new(Writer::spawn(connection, Bell::new(), NodeCache::new(0), Arc::default(), ()).unwrap());
        let (open, held) = hold(&writer).await;
        let insert = |sql: &'static str| {
            let work = move |change: &mut Change<'_>| change.execute(sql, []).map_err(failed("inserting"));
            writer.write_node_in_one_statement(Uuid::nil(), work)
        };
        let (first, bad, last, ()) = tokio::join!(
            biased;
            insert("INSERT INTO child VALUES (1)"),
            insert("INSERT OR ROLLBACK INTO child VALUES (10)"),
            insert("INSERT INTO child VALUES (4)"),
            async { open.send(()).unwrap() },
        );
        held.await.unwrap().unwrap();
        for outcome in [first, bad, last] {
            outcome.unwrap_err();
        }
        assert_eq!(rows(&writer).await.unwrap(), 0);
    }

    /// A call that is queued is done even if its caller gives up, and dropping the writer waits for it.
    #[tokio::test]
    async fn a_dropped_caller_loses_only_the_answer() {
        let connection = Connection::open_in_memory().unwrap();
        let bell = Bell::new();
        let mut ears = bell.listen();
        let writer = Writer::spawn(connection, bell, NodeCache::new(0), Arc::default(), ()).unwrap();
        let (open, gate) = mpsc::channel::<()>();
        let call = writer.write(move |change| {
            change.ring(Uuid::nil());
            gate.recv().map_err(failed("waiting"))
        });
        let given_up = tokio::select! {
            biased;
            _ = call => false,
            () = std::future::ready(()) => true,
        };
        assert!(given_up);
        open.send(()).unwrap();
        drop(writer);
        assert_eq!(ears.try_recv(), Ok(Uuid::nil()));
    }

    /// The cache gets what was written after a commit, and nothing of one that failed.
    #[tokio::test]
    async fn a_failed_commit_leaves_nothing_in_the_cache() {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(
                "PRAGMA foreign_keys = ON;
                 CREATE TABLE parent (id INTEGER PRIMARY KEY);
                 CREATE TABLE child (parent REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);",
            )
            .unwrap();
        let cache = NodeCache::new(1 << 20);
        let writer = Writer::spawn(connection, Bell::new(), cache.clone(), Arc::default(), ()).unwrap();
        let node = Node::enrolled(Uuid::from_u128(1), "fake-hardware", model::Timestamp(0));
        let write = |version: u64, sql: &'static str| {
            let node = Node { version, ..node.clone() };
            writer.write(move |change| {
                change.note(Written::Node(node.uuid, Arc::new(node), 1000));
                change.execute(sql, []).map(drop).map_err(failed("inserting"))
            })
        };
        let cached = || cache.get::<Arc<Node>>(Uuid::from_u128(1)).map(|node| node.version);
        write(1, "INSERT INTO child VALUES (NULL)").await.unwrap();
        assert_eq!(cached(), Some(1));
        write(2, "nonsense").await.unwrap_err();
        assert_eq!(cached(), Some(1), "it was rejected, and changed nothing");
        write(3, "INSERT INTO child VALUES (7)").await.unwrap_err();
        assert_eq!(cached(), None, "the commit failed");
    }
}
