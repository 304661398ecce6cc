//! A node that is removed while its wake-up is due.

use async_trait::async_trait;
use conductor::decision::{Action, Outcome};
use conductor::{CertificateIssuer, Conductor, Executor, Settings, SigningKey};
use model::{Abilities, Contact, Node};
use room::SimClock;
use std::io::{self, Write};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use store::memory::MemoryStore;
use store::{Clock, Members, prelude::*};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::filter::LevelFilter;

/// Removes the node between the read of it and what follows.
struct Removes {
    store: Arc<MemoryStore>,
    removed: Mutex<bool>,
}

#[async_trait]
impl Executor for Removes {
    fn abilities(&self, node: &Node) -> Result<Arc<Abilities>, String> {
        let mut removed = self.removed.lock().unwrap();
        if !std::mem::replace(&mut removed, true) {
            let mut deleting = pin!(self.store.delete_node(node.uuid, node.version, vec![]));
            // The store in memory waits for nothing.
            let done = deleting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(done, Poll::Ready(Ok(()))), "{done:?}");
        }
        Err("nothing".to_owned())
    }

    fn unfenced_call(&self, _: &Contact, _: &Action) -> Duration {
        Duration::ZERO
    }

    async fn act(&self, _: u64, _: &Node, _: &Contact, _: &Action) -> Outcome {
        unreachable!("the node is gone")
    }
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_removed_before_its_lease_is_taken_is_no_error() {
    let log = Log::default();
    let writer = log.clone();
    let logged = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_writer(move || writer.clone())
        .finish();
    let _logging = tracing::subscriber::set_default(logged);
    let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(SimClock::start()));
    let executor = Arc::new(Removes { store: store.clone(), removed: Mutex::default() });
    let issuer = CertificateIssuer::new(SigningKey::generate().unwrap().0, "sim");
    let conductor = Conductor::new(
        store.clone(),
        executor.clone(),
        clock.clone(),
        Settings::default(),
        Members::alone("sim"),
        issuer,
    );
    let mut node = Node::enrolled(uuid::Uuid::from_u128(7), "fake-hardware", clock.now());
    node.target_power_state = Some(model::PowerTarget::On);
    node.next_wake_at = Some(clock.now());
    store.create_node(node, Vec::new()).await.unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(conductor.run(stop.clone()));
    tokio::time::timeout(Duration::from_secs(60), async {
        while !*executor.removed.lock().unwrap() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    stop.cancel();
    task.await.unwrap();
    assert_eq!(store.nodes().await.unwrap(), []);
    assert_eq!(String::from_utf8_lossy(&log.0.lock().unwrap()), "");
}
