//! What other controllers wrote: a connection of its own hears their rings and passes them to the bell of this process.
//!
//! What is rung while it is not connected is lost. So after each connection but the first it rings for every node at which
//! something is under way; what a user asks of a node at rest is found by the conductor's look at what is due.

use crate::address::Address;
use crate::connect::Tls;
use crate::failure::Failure;
use crate::ring::{Ring, StoreId};
use futures_util::future::poll_fn;
use std::time::Duration;
use store::Bell;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Socket};
use uuid::Uuid;

/// Between two tries to connect.
const PAUSE: Duration = Duration::from_millis(500);
/// Held by each controller as long as it hears; [`crate::forget`] needs it alone.
pub const RUNNING: &str = "pg_advisory_lock_shared(4711, 3)";

/// Listens until it is dropped.
pub struct Listener(JoinHandle<()>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Listener {
    /// Begin; what is written after this returns is heard.
    pub async fn start(address: Address, tls: Tls, bell: Bell, own: StoreId) -> Result<Self, Failure> {
        let (ready, heard) = oneshot::channel();
        let ear = Ear { bell, own };
        let task = tokio::spawn(async move {
            let mut ready = Some(ready);
            loop {
                let ended = match &tls {
                    Tls::Plain => session(&address, NoTls, &ear, &mut ready).await,
                    Tls::Verified(tls) => session(&address, tls.clone(), &ear, &mut ready).await,
                };
                let why = ended.map_or_else(|failure| failure.to_string(), |()| "it was closed".to_owned());
                tracing::warn!(why, "the connection that hears other controllers is gone; trying again");
                tokio::time::sleep(PAUSE).await;
            }
        });
        let listener = Self(task);
        // The task ends only with the listener.
        heard.await.map_err(|_| Failure::ended())??;
        Ok(listener)
    }
}

struct Ear {
    bell: Bell,
    own: StoreId,
}

impl Ear {
    fn hear(&self, payload: &str) {
        if let Some((store, ring)) = Ring::parse(payload)
            && store != self.own
        {
            ring.sound(&self.bell);
        }
    }

    /// Ring for what may have been missed.
    fn catch_up(&self, nodes: &[Uuid]) {
        nodes.iter().for_each(|node| self.bell.ring(*node));
    }
}

/// One connection, until it ends. The first reports by `ready` that it hears, or why not.
async fn session<T>(
    address: &Address,
    tls: T,
    ear: &Ear,
    ready: &mut Option<oneshot::Sender<Result<(), Failure>>>,
) -> Result<(), Failure>
where
    T: MakeTlsConnect<Socket> + Send + 'static,
    T::Stream: Send,
    T::TlsConnect: Send,
    <T::TlsConnect as tokio_postgres::tls::TlsConnect<Socket>>::Future: Send,
{
    // A server that took the connection and says nothing would be waited for without end.
    let connected = match tokio::time::timeout(address.limit, address.config.connect(tls)).await {
        Ok(connected) => connected.map_err(Failure::from),
        Err(_) => Err(Failure::silent()),
    };
    let (client, connection) = match (connected, ready.take()) {
        (Ok(connected), first) => {
            *ready = first;
            connected
        }
        (Err(failure), Some(first)) => {
            let _ = first.send(Err(failure.clone()));
            return Err(failure);
        }
        (Err(failure), None) => return Err(failure),
    };
    let hearing = pump(connection, ear);
    tokio::pin!(hearing);
    // The connection answers only while it is driven.
    let begun = tokio::select! {
        biased;
        ended = &mut hearing => ended.and(Err(Failure::ended())),
        begun = begin(&client) => begun,
    };
    match (begun, ready.take()) {
        (begun, Some(first)) => {
            let _ = first.send(begun.clone().map(drop));
            begun.map(drop)?;
        }
        (begun, None) => ear.catch_up(&begun?),
    }
    hearing.await
}

/// Hear from now on. The nodes at which something is under way.
async fn begin(client: &Client) -> Result<Vec<Uuid>, Failure> {
    client.batch_execute(&format!("SET statement_timeout = 0; SELECT {RUNNING}; LISTEN anneal")).await?;
    let found = client.query("SELECT uuid FROM node WHERE at_work", &[]).await?;
    found.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

async fn pump<S>(mut connection: Connection<Socket, S>, ear: &Ear) -> Result<(), Failure>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(heard) = message? {
            ear.hear(heard.payload());
        }
    }
    Ok(())
}
