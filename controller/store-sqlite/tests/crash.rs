//! What a call acknowledged survives `kill -9`.
//!
//! The test starts itself again as a child that writes and prints what was acknowledged, kills it at random
//! moments, opens the file and compares.

use model::agent::AgentKind;
use model::history::Severity;
use model::{Cursor, Event, EventKind, Node, Run, RunKind, Timestamp};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use store::prelude::*;
use store::{HeartbeatRecord, TokenRequest};
use store_sqlite::{DatabaseKey, SqliteStore};
use uuid::Uuid;

const DATABASE: &str = "ANNEAL_CRASH_TEST_DATABASE";
const NODES: u128 = 4;
const KILLS: u32 = 30;
const TOKEN: &str = "token";

fn key() -> DatabaseKey {
    DatabaseKey::from_text(&"07".repeat(32)).unwrap()
}

fn uuid(index: u128) -> Uuid {
    Uuid::from_u128(0x1111_1111_1111_4111_8111_0000_0000_0000 + index)
}

/// The child: two tasks a node write without end, one the node with an event each, one its contact.
/// Prints `node INDEX VERSION` and `beat INDEX COUNT` once that is acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of acknowledged_writes_survive_sigkill"]
async fn child() {
    let Some(path) = std::env::var_os(DATABASE).map(PathBuf::from) else { return };
    let store = Arc::new(SqliteStore::open(&path, &key()).unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..NODES {
        if store.node(uuid(index)).await.is_err() {
            let mut node = Node::enrolled(uuid(index), "fake-hardware", Timestamp(0));
            node.name = Some(format!("n{index}"));
            let run = Run::new(RunKind::AutomatedClean, Timestamp(0));
            node.run = Some(Run { cursor: Cursor::AwaitAgent, ..run });
            store.create_node(node, vec![]).await.unwrap();
        }
        store.grant_token(uuid(index), TokenRequest::without_nonce(TOKEN, None, Timestamp(0))).await.unwrap();
        tasks.spawn(write_node(store.clone(), index));
        tasks.spawn(write_beats(store.clone(), index));
    }
    tasks.join_next().await.unwrap().unwrap();
}

async fn write_node(store: Arc<SqliteStore>, index: u128) {
    let mut node = store.node(uuid(index)).await.unwrap();
    loop {
        node.extra.insert("version".to_owned(), (node.version + 1).into());
        let text = (node.version + 1).to_string();
        let event = Event::new(EventKind::Step, Severity::Info, text, Timestamp(0));
        node = store.update_node(node, vec![event], None).await.unwrap();
        say(&format!("node {index} {}\n", node.version));
    }
}

async fn write_beats(store: Arc<SqliteStore>, index: u128) {
    let last = store.contact(uuid(index)).await.unwrap().last_heartbeat_at;
    for count in last.map_or(0, |last| last.0) + 1.. {
        let beat = HeartbeatRecord {
            callback_url: format!("https://192.0.2.1:{count}"),
            verify_ca: None,
            agent_version: None,
            at: Timestamp(count),
            agent: AgentKind::Ipa,
        };
        store.record_heartbeat(uuid(index), TOKEN, beat).await.unwrap();
        say(&format!("beat {index} {count}\n"));
    }
}

/// One write(2) a line, past the test harness's buffers: a line the parent has read was printed after the answer.
fn say(line: &str) {
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Largest number acknowledged for each of `node 0`, `beat 0`, ….
type Acknowledged = BTreeMap<String, u64>;

#[tokio::test]
async fn acknowledged_writes_survive_sigkill() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    let mut acknowledged = Acknowledged::new();
    for kill in 0..KILLS {
        write_until_killed(&path, kill, &mut acknowledged);
        let store = SqliteStore::open(&path, &key()).unwrap();
        compare(&store, &acknowledged).await;
        drop(store);
        let database = rusqlite::Connection::open(&path).unwrap();
        let whole: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(whole, "ok", "after kill {kill}");
    }
    assert_eq!(acknowledged.len(), 8, "every kind of write was acknowledged at least once: {acknowledged:?}");
    println!("{KILLS} kills; acknowledged: {acknowledged:?}");
}

/// Every third kill falls somewhere into opening and migrating, the others after a random number of
/// acknowledged writes and a random moment more.
fn write_until_killed(path: &Path, kill: u32, acknowledged: &mut Acknowledged) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "child", "--nocapture"])
        .env(DATABASE, path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    let mut next = |acknowledged: &mut Acknowledged| {
        line.clear();
        let complete = lines.read_line(&mut line).unwrap() > 0 && line.ends_with('\n');
        if complete {
            let (what, number) = line.trim_end().rsplit_once(' ').unwrap_or_default();
            let number: u64 = number.parse().unwrap_or_else(|_| panic!("the child says: {line}"));
            let largest = acknowledged.entry(what.to_owned()).or_default();
            *largest = number.max(*largest);
        }
        complete
    };
    if kill.is_multiple_of(3) {
        std::thread::sleep(Duration::from_micros(random() % 30_000));
    } else {
        let enough = random() % 300;
        for seen in 0..=enough {
            assert!(next(acknowledged), "the child ended by itself after {seen} lines");
        }
        std::thread::sleep(Duration::from_micros(random() % 3_000));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    while next(acknowledged) {}
}

async fn compare(store: &SqliteStore, acknowledged: &Acknowledged) {
    for index in 0..NODES {
        let last = |what: &str| acknowledged.get(&format!("{what} {index}")).copied();
        let Ok(node) = store.node(uuid(index)).await else {
            assert_eq!((last("node"), last("beat")), (None, None), "node {index} is lost");
            continue;
        };
        assert!(last("node").is_none_or(|last| node.version >= last), "node {index} lost {:?}", last("node"));
        assert!(node.version == 1 || node.extra["version"] == node.version, "node {index} is of one piece");
        let events: Vec<_> =
            store.history(node.uuid).await.unwrap().into_iter().map(|event| event.text).collect();
        let expected: Vec<_> = (2..=node.version).map(|version| version.to_string()).collect();
        assert_eq!(events, expected, "node {index}: an event for each write, no write without its event");

        let contact = store.contact(node.uuid).await.unwrap();
        let stored = contact.last_heartbeat_at.map_or(0, |at| at.0.cast_unsigned());
        assert!(last("beat").is_none_or(|last| stored >= last), "contact {index} lost {:?}", last("beat"));
        assert!(stored == 0 || contact.callback_url == Some(format!("https://192.0.2.1:{stored}")));
    }
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}
