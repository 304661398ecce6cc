//! What reads return while others write.

use crate::document::failed;
use crate::writer::Change;
use crate::{DatabaseKey, SqliteStore};
use model::agent::AgentKind;
use model::{Cursor, Node, Run, RunKind, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use store::prelude::*;
use store::{HeartbeatRecord, NodeFilter, NodeQuery, StoreError, TokenRequest};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use uuid::Uuid;

fn opened() -> (tempfile::TempDir, Arc<SqliteStore>) {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&dir.path().join("a.db"), &DatabaseKey::generate().unwrap()).unwrap();
    (dir, Arc::new(store))
}

fn node(number: u128) -> Node {
    let node = Node::enrolled(Uuid::from_u128(number), "fake-hardware", Timestamp(0));
    let run = Run { cursor: Cursor::AwaitAgent, ..Run::new(RunKind::AutomatedClean, Timestamp(0)) };
    Node { run: Some(run), ..node }
}

fn beat(at: i64) -> HeartbeatRecord {
    let callback_url = "https://192.0.2.1:9999".to_owned();
    HeartbeatRecord {
        callback_url,
        verify_ca: None,
        agent_version: None,
        at: Timestamp(at),
        agent: AgentKind::Ipa,
    }
}

/// Two writes at one version, and a heartbeat with a token that was revoked, wait for the same transaction.
#[tokio::test]
async fn work_sees_the_work_before_it_in_the_same_transaction() {
    let (_dir, store) = opened();
    let node = store.create_node(node(1), vec![]).await.unwrap();
    let uuid = node.uuid;
    store.grant_token(uuid, TokenRequest::without_nonce("token", None, Timestamp(0))).await.unwrap();
    store.record_heartbeat(uuid, "token", beat(1)).await.unwrap();
    // Once this runs its transaction takes no more work; it holds the writer until the rest is queued for the next one.
    let (begin, begun) = oneshot::channel();
    let (open, gate) = mpsc::channel::<()>();
    let holder = store.clone();
    let held = tokio::spawn(async move {
        let hold = move |_: &mut Change<'_>| {
            let _ = begin.send(());
            gate.recv().map_err(failed("waiting"))
        };
        holder.writer.write(hold).await
    });
    begun.await.unwrap();
    let (first, second, forgot, late, ()) = tokio::join!(
        biased;
        store.update_node(node.clone(), vec![], None),
        store.update_node(node.clone(), vec![], None),
        store.forget_agent(uuid, None, None),
        store.record_heartbeat(uuid, "token", beat(2)),
        async { open.send(()).unwrap() },
    );
    held.await.unwrap().unwrap();
    assert_eq!(first.unwrap().version, 2);
    assert!(matches!(second, Err(StoreError::Stale(_))), "{second:?}");
    forgot.unwrap();
    assert!(matches!(late, Err(StoreError::Stale(_))), "{late:?}");
    assert_eq!(store.contact(uuid).await.unwrap().token, None);
}

/// Readers, each by every way to read a node, never see an older version after a newer one, and never one older than the last
/// that was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_read_goes_back_while_others_write() {
    const NODES: u128 = 3;
    let (_dir, store) = opened();
    // Room for one node or so: entries come and go.
    for limit in [1 << 20, 6000] {
        store.limit_cache(limit);
        let mut tasks = JoinSet::new();
        let stop = Arc::new(AtomicBool::new(false));
        for number in 1..=NODES {
            if limit > 6000 {
                store.create_node(node(number), vec![]).await.unwrap();
            }
            let (writer, reader) = (store.clone(), store.clone());
            let (stop, ended) = (stop.clone(), stop.clone());
            tasks.spawn(async move {
                for _ in 0..150 {
                    let read = writer.node(Uuid::from_u128(number)).await.unwrap();
                    let wrote = writer.update_node(read, vec![], None).await.unwrap().version;
                    let seen = writer.look(Uuid::from_u128(number), None).await.unwrap().0.unwrap().version;
                    assert_eq!(seen, wrote, "no other task writes it");
                }
                stop.store(true, Ordering::Relaxed);
            });
            tasks.spawn(async move {
                let (uuid, mut newest) = (Uuid::from_u128(number), 0);
                while !ended.load(Ordering::Relaxed) {
                    let page = reader.node_page(NodeQuery::first(10, NodeFilter::default())).await.unwrap();
                    let of_page = page.nodes.iter().find(|node| node.uuid == uuid).unwrap().version;
                    let of_ident = reader.node_by_ident(&uuid.to_string()).await.unwrap().version;
                    let of_look = reader.look(uuid, None).await.unwrap().0.unwrap().version;
                    for version in [of_page, of_ident, of_look] {
                        assert!(version >= newest, "{version} after {newest}");
                        newest = version;
                    }
                }
            });
        }
        for ended in tasks.join_all().await {
            ended
        }
    }
}

#[tokio::test]
async fn nodes_that_are_looked_at_once_do_not_stay() {
    let (_dir, store) = opened();
    for number in 1..=3 {
        store.create_node(node(number), vec![]).await.unwrap();
    }
    store.limit_cache(0);
    store.limit_cache(1 << 20);
    let all = || NodeQuery::first(10, NodeFilter::default());
    let once = store.node_page_once(all()).await.unwrap();
    assert_eq!((once.nodes.len(), store.cache.bytes()), (3, 0));
    assert_eq!(store.node_page(all()).await.unwrap(), once);
    assert!(store.cache.bytes() > 0, "others do");
}
