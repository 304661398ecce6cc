//! A few connections that only read. In WAL mode they neither wait for the writer nor hold it up, and see
//! everything whose commit was acknowledged before they began.

use rusqlite::Connection;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::{Result, StoreError};
use tokio::sync::Semaphore;

/// Steps of SQLite's virtual machine after which a read with a time limit looks at the time: some microseconds.
const STEPS_BETWEEN_LOOKS: c_int = 1000;

/// The pool.
#[derive(Clone)]
pub struct Readers {
    idle: Arc<Mutex<Vec<Connection>>>,
    free: Arc<Semaphore>,
}

/// A connection taken out of the pool; goes back when dropped, also by a panic.
struct Taken {
    connection: Option<Connection>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(connection);
        }
    }
}

impl Readers {
    /// A pool of these connections.
    pub fn new(connections: Vec<Connection>) -> Self {
        let free = Arc::new(Semaphore::new(connections.len()));
        Self { idle: Arc::new(Mutex::new(connections)), free }
    }

    /// Run `query` on a thread that may block, in one read transaction.
    pub async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(None, query).await
    }

    /// The same for a query that may look at many rows: it fails with `TooSlow` when it has run for `limit`.
    pub async fn read_within<T: Send + 'static>(
        &self,
        limit: Duration,
        query: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(Some(limit), query).await
    }

    async fn run<T: Send + 'static>(
        &self,
        limit: Option<Duration>,
        query: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let closed = || StoreError::failed("the store's readers are closed");
        let permit = self.free.clone().acquire_owned().await.map_err(|_| closed())?;
        let idle = self.idle.clone();
        let read = move || {
            // Declared first, so dropped last: the connection is back before the permit is.
            let _permit = permit;
            let connection = idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
            let mut taken = Taken { connection, idle };
            let Some(connection) = &mut taken.connection else { return Err(closed()) };
            match limit {
                None => in_transaction(connection, query),
                Some(limit) => within(connection, limit, query),
            }
        };
        tokio::task::spawn_blocking(read)
            .await
            .map_err(|error| StoreError::caused("a read did not end", error))?
    }
}

fn in_transaction<T>(connection: &Connection, query: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    let snapshot =
        connection.unchecked_transaction().map_err(|error| StoreError::caused("beginning to read", error))?;
    query(&snapshot)
}

/// Run `query` until `limit` has passed.
fn within<T>(
    connection: &mut Connection,
    limit: Duration,
    query: impl FnOnce(&Connection) -> Result<T>,
) -> Result<T> {
    let begun = Instant::now();
    let is_over = Arc::new(AtomicBool::new(false));
    let noted = is_over.clone();
    let look = move || {
        let over = begun.elapsed() >= limit;
        noted.fetch_or(over, Ordering::Relaxed);
        over
    };
    let set = |error| StoreError::caused("setting the time limit of a read", error);
    connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(look)).map_err(set)?;
    let result = in_transaction(connection, query);
    connection.progress_handler(0, None::<fn() -> bool>).map_err(set)?;
    match result {
        Err(StoreError::Failed { .. }) if is_over.load(Ordering::Relaxed) => Err(StoreError::TooSlow(limit)),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::failed;

    #[tokio::test]
    async fn a_read_ends_with_its_time_and_the_next_begins_anew() {
        let readers = Readers::new(vec![Connection::open_in_memory().unwrap()]);
        let count = |to: u32| {
            move |connection: &Connection| {
                let sql = format!(
                    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {to}) SELECT max(i) FROM n"
                );
                connection.query_row(&sql, [], |row| row.get::<_, u32>(0)).map_err(failed("counting"))
            }
        };
        let slow = readers.read_within(Duration::ZERO, count(100_000)).await;
        assert!(matches!(slow, Err(StoreError::TooSlow(Duration::ZERO))), "{slow:?}");
        assert_eq!(readers.read(count(100_000)).await.unwrap(), 100_000);
        assert_eq!(readers.read_within(Duration::from_secs(600), count(100_000)).await.unwrap(), 100_000);
        let wrong = |connection: &Connection| connection.execute("nonsense", []).map_err(failed("trying"));
        let other = readers.read_within(Duration::from_secs(600), wrong).await;
        assert!(matches!(other, Err(StoreError::Failed { .. })), "{other:?}");
    }
}
