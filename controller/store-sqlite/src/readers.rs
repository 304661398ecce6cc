//! A few connections that only read. In WAL mode they neither wait for the writer nor hold it up, and see
//! everything whose commit was acknowledged before they began.

use rusqlite::Connection;
use std::sync::{Arc, Mutex};
use store::{Result, StoreError};
use tokio::sync::Semaphore;

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
        let closed = || StoreError::failed("the store's readers are closed");
        let permit = self.free.clone().acquire_owned().await.map_err(|_| closed())?;
        let idle = self.idle.clone();
        let read = move || {
            // Declared first, so dropped last: the connection is back before the permit is.
            let _permit = permit;
            let connection = idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
            let taken = Taken { connection, idle };
            let Some(connection) = &taken.connection else { return Err(closed()) };
            let snapshot = connection
                .unchecked_transaction()
                .map_err(|error| StoreError::caused("beginning to read", error))?;
            query(&snapshot)
        };
        tokio::task::spawn_blocking(read)
            .await
            .map_err(|error| StoreError::caused("a read did not end", error))?
    }
}
