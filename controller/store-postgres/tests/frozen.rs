//! A controller that is frozen in the middle of its transactions does not keep the others from writing.

use model::{Node, Timestamp};
use postgres_server::{Server, shared};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::prelude::*;
use store_conformance::certificate;
use store_postgres::{DatabaseKey, PostgresStore, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use uuid::Uuid;

/// Nodes that the frozen controller works on at once.
const NODES: usize = 8;
/// Certificates that it writes before that.
const WRITTEN: usize = 100;
/// A transaction that has sent half of what it sends last keeps the lock for 5 s; several of them would keep it one after another.
const AT_MOST: Duration = Duration::from_secs(8);

async fn open(url: String) -> PostgresStore {
    let key = DatabaseKey::from_text(&"07".repeat(32)).unwrap();
    PostgresStore::open(&Settings::at(&url), &key).await.unwrap()
}

/// Passes on what comes until it is frozen; then it keeps what it has, and the connections stay open.
async fn pass_on(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    frozen: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut bytes).await.unwrap_or(0);
        if *frozen.borrow() {
            std::future::pending::<()>().await;
        }
        if count == 0 || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

/// The socket of a server, in `dir`, behind which all freezes at once.
fn freezable(server: &Server, dir: &Path, frozen: watch::Receiver<bool>) {
    let files = std::fs::read_dir(server.dir()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names = files.filter_map(|name| name.into_string().ok());
    let name = names.find(|name| name.starts_with(".s.PGSQL.") && !name.ends_with(".lock")).unwrap();
    let listener = UnixListener::bind(dir.join(&name)).unwrap();
    let socket = server.dir().join(name);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = UnixStream::connect(&socket).await.unwrap().into_split();
            tokio::spawn(pass_on(from_client, to_server, frozen.clone()));
            tokio::spawn(pass_on(from_server, to_client, frozen.clone()));
        }
    });
}

async fn enrolled(store: &PostgresStore) -> Node {
    let node = Node::enrolled(Uuid::new_v4(), "fake-hardware", Timestamp(0));
    store.create_node(node, vec![]).await.unwrap()
}

/// The log of certificates is one for all nodes, so its lock is what all controllers wait for.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_others_write_certificates_at_once() {
    let server = shared();
    let database = server.create();
    let other = open(server.url(&database)).await;
    let dir = tempfile::tempdir().unwrap();
    let (freeze, frozen) = watch::channel(false);
    freezable(&server, dir.path(), frozen);
    let through = |path: &Path| path.to_str().unwrap().replace('/', "%2F");
    let url = server.url(&database).replace(&through(server.dir()), &through(dir.path()));
    let victim = Arc::new(open(url).await);

    let (written, mut certificates) = tokio::sync::mpsc::unbounded_channel();
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..NODES {
        let (victim, written) = (victim.clone(), written.clone());
        let mut node = enrolled(&victim).await;
        writers.spawn(async move {
            for number in 1.. {
                let certificate = certificate(node.uuid, number);
                node = victim.certify(node, vec![], None, certificate).await.unwrap();
                written.send(()).unwrap();
            }
        });
    }
    for _ in 0..WRITTEN {
        certificates.recv().await.unwrap();
    }
    freeze.send(true).unwrap();

    let begun = Instant::now();
    let node = enrolled(&other).await;
    let certificate = certificate(node.uuid, 1);
    other.certify(node, vec![], None, certificate).await.unwrap();
    assert!(begun.elapsed() < AT_MOST, "after {:?}", begun.elapsed());
    let lines = other.certificate_log(1, 1000).await.unwrap();
    certificate::Log::read(lines.iter().map(String::as_str)).unwrap();
}
