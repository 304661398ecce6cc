//! What a call acknowledged is there after every process of PostgreSQL was killed, nothing is half there, and the store goes on by
//! itself.

use model::agent::AgentKind;
use model::history::Severity;
use model::{Cursor, Event, EventKind, Node, Run, RunKind, Timestamp};
use postgres_server::{Durability, Server};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::prelude::*;
use store::{HeartbeatRecord, StoreError, TokenRequest};
use store_postgres::{DatabaseKey, PostgresStore, Settings};
use uuid::Uuid;

const NODES: usize = 6;
const KILLS: u32 = 6;
const TOKEN: &str = "token";

/// The answers that the callers of one node got.
#[derive(Default)]
struct Answers {
    version: AtomicU64,
    beat: AtomicU64,
    /// Calls that ended with an error: that it is not known, or that the database cannot be reached.
    refused: AtomicU64,
}

async fn write_node(store: Arc<PostgresStore>, uuid: Uuid, answers: Arc<Answers>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut node) = store.node(uuid).await else {
            answers.refused.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        assert!(node.version >= answers.version.load(Ordering::Relaxed), "an acknowledged write is lost");
        let next = node.version + 1;
        node.extra.insert("version".to_owned(), next.into());
        let event = Event::new(EventKind::Step, Severity::Info, next.to_string(), Timestamp(0));
        match store.update_node(node, vec![event], None).await {
            Ok(written) => {
                assert_eq!(written.version, next);
                answers.version.store(next, Ordering::Relaxed);
            }
            Err(StoreError::Failed { .. }) => {
                answers.refused.fetch_add(1, Ordering::Relaxed);
            }
            // No other task writes it.
            Err(other) => panic!("a write of version {next}: {}", other.chain()),
        }
    }
}

async fn write_beats(store: Arc<PostgresStore>, uuid: Uuid, answers: Arc<Answers>, stop: Arc<AtomicBool>) {
    for count in 1.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let beat = HeartbeatRecord {
            callback_url: format!("https://192.0.2.1:{count}"),
            verify_ca: None,
            agent_version: None,
            at: Timestamp(count),
            agent: AgentKind::Ipa,
        };
        match store.record_heartbeat(uuid, TOKEN, beat).await {
            Ok(()) => answers.beat.store(count.cast_unsigned(), Ordering::Relaxed),
            Err(StoreError::Failed { .. }) => {
                answers.refused.fetch_add(1, Ordering::Relaxed);
            }
            Err(other) => panic!("heartbeat {count}: {}", other.chain()),
        }
    }
}

async fn new_node(store: &PostgresStore) -> Uuid {
    let mut node = Node::enrolled(Uuid::new_v4(), "fake-hardware", Timestamp(0));
    node.run = Some(Run { cursor: Cursor::AwaitAgent, ..Run::new(RunKind::AutomatedClean, Timestamp(0)) });
    let uuid = store.create_node(node, vec![]).await.unwrap().uuid;
    store.grant_token(uuid, TokenRequest::without_nonce(TOKEN, None, Timestamp(0))).await.unwrap();
    uuid
}

/// Until every node was written again.
async fn all_go_on(nodes: &[(Uuid, Arc<Answers>)]) {
    let before: Vec<u64> = nodes.iter().map(|(_, answers)| answers.version.load(Ordering::Relaxed)).collect();
    let began = Instant::now();
    let behind = || {
        nodes
            .iter()
            .zip(&before)
            .any(|((_, answers), before)| answers.version.load(Ordering::Relaxed) <= before + 5)
    };
    while behind() {
        assert!(began.elapsed() < Duration::from_secs(60), "a node is not written any more");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_the_death_of_postgresql() {
    let mut server = Server::start(Durability::Full);
    let settings = Settings::at(&server.url(&server.create()));
    let key = DatabaseKey::generate().unwrap();
    let stores = [
        Arc::new(PostgresStore::open(&settings, &key).await.unwrap()),
        Arc::new(PostgresStore::open(&settings, &key).await.unwrap()),
    ];
    let stop = Arc::new(AtomicBool::new(false));
    let (mut nodes, mut tasks) = (Vec::new(), tokio::task::JoinSet::new());
    for index in 0..NODES {
        let store = stores[index % 2].clone();
        let (uuid, answers) = (new_node(&store).await, Arc::new(Answers::default()));
        tasks.spawn(write_node(store.clone(), uuid, answers.clone(), stop.clone()));
        tasks.spawn(write_beats(store, uuid, answers.clone(), stop.clone()));
        nodes.push((uuid, answers));
    }
    for kill in 0..KILLS {
        all_go_on(&nodes).await;
        // In the middle of commits: at another moment each time.
        tokio::time::sleep(Duration::from_micros(random() % 20_000)).await;
        server = tokio::task::spawn_blocking(move || {
            if kill % 3 == 2 {
                server.stop()
            } else {
                server.kill()
            }
            server.run();
            server
        })
        .await
        .unwrap();
    }
    all_go_on(&nodes).await;
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    for (uuid, answers) in &nodes {
        let (node, history) = (stores[0].node(*uuid).await.unwrap(), stores[0].history(*uuid).await.unwrap());
        assert!(node.version >= answers.version.load(Ordering::Relaxed), "an acknowledged write is lost");
        assert_eq!(node.extra["version"], node.version, "of one piece");
        // As many as are kept; each write has its event, and none was made twice.
        let texts: Vec<u64> = history.iter().map(|event| event.text.parse().unwrap()).collect();
        let first = node.version + 1 - u64::try_from(texts.len()).unwrap();
        assert_eq!(texts, (first..=node.version).collect::<Vec<_>>(), "an event for each write");
        let contact = stores[1].contact(*uuid).await.unwrap();
        let beat = contact.last_heartbeat_at.map_or(0, |at| at.0.cast_unsigned());
        assert!(beat >= answers.beat.load(Ordering::Relaxed), "an acknowledged heartbeat is lost");
        assert_eq!(contact.callback_url, Some(format!("https://192.0.2.1:{beat}")));
        println!(
            "{KILLS} kills; {} writes, {beat} heartbeats, {} refused",
            node.version,
            answers.refused.load(Ordering::Relaxed)
        );
    }
}

/// A database that is gone for longer than calls wait: they say so in time, and all goes on when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_postgresql_is_gone_calls_end_with_an_error_in_time() {
    let mut server = Server::start(Durability::None);
    let patience = Duration::from_secs(1);
    let settings = Settings { connect_timeout: patience, ..Settings::at(&server.url(&server.create())) };
    let store = PostgresStore::open(&settings, &DatabaseKey::generate().unwrap()).await.unwrap();
    let uuid = new_node(&store).await;
    let node = store.node(uuid).await.unwrap();
    server.stop();
    let began = Instant::now();
    for error in [store.node(uuid).await.err(), store.update_node(node.clone(), vec![], None).await.err()] {
        let error = error.expect("there is no database").chain();
        assert!(error.starts_with("store: "), "{error}");
    }
    assert!(began.elapsed() >= patience && began.elapsed() < 20 * patience, "{:?}", began.elapsed());
    server.run();
    let written = store.update_node(node, vec![], None).await.unwrap();
    assert_eq!(store.node(uuid).await.unwrap(), written);
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}
