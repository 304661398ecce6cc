//! Several stores on one database, as several controllers have it.

use model::agent::AgentKind;
use model::history::Severity;
use model::{Cursor, Event, EventKind, LoggedEvent, Node, Resource, ResourceKind, Run, RunKind, Timestamp};
use postgres_server::shared;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::prelude::*;
use store::{
    EventCursor, FieldValue, HeartbeatRecord, NodeField, NodeFilter, NodeQuery, ResourceWrite, StoreError,
    TokenGrant, TokenRequest, Unique,
};
use store_conformance::certificate;
use store_postgres::{DatabaseKey, OpenError, PostgresStore, Settings};
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

fn key() -> DatabaseKey {
    DatabaseKey::from_text(&"07".repeat(32)).unwrap()
}

async fn open(database: &str) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(&Settings::at(&shared().url(database)), &key()).await.unwrap())
}

/// Two controllers on a database of their own.
async fn two() -> (String, [Arc<PostgresStore>; 2]) {
    let name = shared().create();
    let stores = [open(&name).await, open(&name).await];
    (name, stores)
}

fn new_node(name: &str) -> Node {
    let mut node = Node::enrolled(Uuid::new_v4(), "fake-hardware", Timestamp(0));
    node.name = Some(name.to_owned());
    node.run = Some(Run { cursor: Cursor::AwaitAgent, ..Run::new(RunKind::AutomatedClean, Timestamp(0)) });
    node
}

fn event(text: String) -> Event {
    Event::new(EventKind::Step, Severity::Info, text, Timestamp(0))
}

/// Which of two at once won.
fn winner<T: std::fmt::Debug>(a: store::Result<T>, b: store::Result<T>) -> (usize, T, StoreError) {
    match (a, b) {
        (Ok(won), Err(lost)) => (0, won, lost),
        (Err(lost), Ok(won)) => (1, won, lost),
        other => panic!("exactly one of two wins, got {other:?}"),
    }
}

/// The next ring, which comes from another process by way of the database.
async fn heard(ears: &mut UnboundedReceiver<Uuid>) -> Uuid {
    tokio::time::timeout(Duration::from_secs(30), ears.recv()).await.expect("a ring").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_controllers_that_write_one_version_one_wins() {
    let _server = shared();
    let (_, [one, other]) = two().await;
    let mut node = one.create_node(new_node("n"), vec![]).await.unwrap();
    for round in 0..30 {
        let write = |store: &Arc<PostgresStore>, who: &str| {
            let (store, mut mine) = (store.clone(), node.clone());
            mine.last_error = Some(format!("{round} {who}"));
            tokio::spawn(async move { store.update_node(mine, vec![event(round.to_string())], None).await })
        };
        let (a, b) = (write(&one, "a"), write(&other, "b"));
        let (_, won, lost) = winner(a.await.unwrap(), b.await.unwrap());
        assert!(matches!(lost, StoreError::Stale(uuid) if uuid == node.uuid), "{lost:?}");
        assert_eq!(other.node(node.uuid).await.unwrap(), won);
        node = won;
    }
    assert_eq!(one.history(node.uuid).await.unwrap().len(), 30, "the loser's events are not stored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_conductors_one_gets_the_lease_and_no_epoch_twice() {
    let _server = shared();
    let (_, [one, other]) = two().await;
    let mut epochs = BTreeSet::new();
    for round in 0..30 {
        let node = one.create_node(new_node(&round.to_string()), vec![]).await.unwrap().uuid;
        let take = |store: &Arc<PostgresStore>, holder: &'static str| {
            let store = store.clone();
            tokio::spawn(
                async move { store.take_lease(node, holder, Timestamp(0), Timestamp(10)).await.unwrap() },
            )
        };
        let (a, b) = (take(&one, "a"), take(&other, "b"));
        let lease = match (a.await.unwrap(), b.await.unwrap()) {
            (Some(lease), None) | (None, Some(lease)) => lease,
            both => panic!("exactly one of two conductors gets the lease, got {both:?}"),
        };
        assert!(epochs.insert(lease.epoch), "{} was given before", lease.epoch);
        assert!(epochs.last() == Some(&lease.epoch), "epochs grow, whichever controller takes the lease");
    }
}

/// The old holder is in its transaction when the lease is taken over: it has written before, or nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_written_under_a_lease_once_another_has_it() {
    let _server = shared();
    let (_, [one, other]) = two().await;
    let mut after_take_over = 0;
    for round in 0..60 {
        let node = one.create_node(new_node(&round.to_string()), vec![]).await.unwrap();
        let uuid = node.uuid;
        let old = one.take_lease(uuid, "a", Timestamp(0), Timestamp(10)).await.unwrap().unwrap();
        let (writer, taker) = (one.clone(), other.clone());
        let write = tokio::spawn(async move { writer.update_node(node, vec![], Some(old)).await });
        let take = tokio::spawn(async move {
            let lease = taker.take_lease(uuid, "b", Timestamp(10), Timestamp(20)).await.unwrap().unwrap();
            // What a successor reads first is what it acts on.
            (lease, taker.node(uuid).await.unwrap().version)
        });
        let (written, (lease, seen)) = (write.await.unwrap(), take.await.unwrap());
        assert!(lease.epoch > old.epoch);
        match written {
            Ok(written) => {
                assert_eq!(seen, written.version, "written after another took the lease and looked")
            }
            Err(StoreError::Stale(_)) => after_take_over += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    println!("{after_take_over} of 60 came too late");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unique_values_are_unique_among_controllers() {
    let _server = shared();
    let (_, [one, other]) = two().await;
    for round in 0..20 {
        let name = format!("n{round}");
        let create = |store: &Arc<PostgresStore>| {
            let (store, node) = (store.clone(), new_node(&name));
            tokio::spawn(async move { store.create_node(node, vec![]).await })
        };
        let (a, b) = (create(&one), create(&other));
        let (_, won, lost) = winner(a.await.unwrap(), b.await.unwrap());
        assert!(matches!(&lost, StoreError::Duplicate { what: Unique::NodeName, value } if *value == name));
        assert_eq!(other.node_by_ident(&name).await.unwrap(), won);
        let port = |store: &Arc<PostgresStore>| {
            let (store, mac) = (store.clone(), format!("52:54:00:00:00:{round:02x}").parse().unwrap());
            let port = Resource::port(Uuid::new_v4(), won.uuid, mac, Timestamp(0));
            tokio::spawn(async move { store.write_resource(ResourceWrite::Create(port), None, vec![]).await })
        };
        let (a, b) = (port(&one), port(&other));
        let (_, _, lost) = winner(a.await.unwrap(), b.await.unwrap());
        assert!(matches!(&lost, StoreError::Duplicate { what: Unique::ResourceKey, .. }), "{lost:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_agents_at_two_controllers_one_gets_the_token() {
    let _server = shared();
    let (_, [one, other]) = two().await;
    for round in 0..20 {
        let node = one.create_node(new_node(&round.to_string()), vec![]).await.unwrap().uuid;
        let ask = |store: &Arc<PostgresStore>, token: &'static str| {
            let store = store.for_agents();
            let request = TokenRequest::without_nonce(token, Some(token), Timestamp(1));
            tokio::spawn(async move { store.grant_token(node, request).await.unwrap() })
        };
        let (a, b) = (ask(&one, "a"), ask(&other, "b"));
        let given = match (a.await.unwrap(), b.await.unwrap()) {
            (TokenGrant::Given, TokenGrant::AlreadyOut) => "a",
            (TokenGrant::AlreadyOut, TokenGrant::Given) => "b",
            both => panic!("exactly one of two agents gets the token, got {both:?}"),
        };
        assert_eq!(other.contact(node).await.unwrap().token.as_deref(), Some(given));
    }
}

/// What cannot be continued is named, and nothing is stored.
#[tokio::test]
async fn a_damaged_log_of_certificates_takes_no_more() {
    let server = shared();
    let database = server.create();
    let store = open(&database).await;
    let node = store.create_node(new_node("n"), vec![]).await.unwrap();
    let damage = "INSERT INTO certificate (id, node, number, doc) VALUES ('x', gen_random_uuid(), 1, '{}');
        INSERT INTO certificate_log (seq, certificate, line) VALUES (1, 'x', 'no line')";
    server.sql(&database, damage);
    let (new, uuid) = (certificate(node.uuid, 1), node.uuid);
    let error = store.certify(node.clone(), vec![], None, new.clone()).await.unwrap_err().chain();
    assert!(error.contains(&format!("adding certificate {} to the log", new.id)), "{error}");
    assert_eq!(store.node(uuid).await.unwrap(), node);
    assert_eq!(store.certificates(uuid).await.unwrap(), []);
}

/// Each line names the digest of the one before it: two that were added at once would name the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_log_of_certificates_is_one_chain() {
    let _server = shared();
    let (_, stores) = two().await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..6 {
        let store = stores[writer % 2].clone();
        let mut node = store.create_node(new_node(&writer.to_string()), vec![]).await.unwrap();
        writers.spawn(async move {
            for number in 1..=10 {
                let certificate = certificate(node.uuid, number);
                node = store.certify(node, vec![], None, certificate).await.unwrap();
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    let lines = stores[0].certificate_log(1, 1000).await.unwrap();
    let log = certificate::Log::read(lines.iter().map(String::as_str)).unwrap();
    assert_eq!(log.entries().len(), 60);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_bells_of_all_controllers_ring() {
    let _server = shared();
    let (_, [one, other]) = two().await;
    let mut ears = other.bell().listen();
    let mut waiting = other.bell().listen_for_locks();
    let node = one.create_node(new_node("n"), vec![]).await.unwrap();
    assert_eq!(heard(&mut ears).await, node.uuid, "create");
    assert_eq!(heard(&mut waiting).await, node.uuid);
    let request = TokenRequest::without_nonce("token", None, Timestamp(1));
    one.for_agents().grant_token(node.uuid, request).await.unwrap();
    assert_eq!(heard(&mut ears).await, node.uuid, "token");
    assert_eq!(heard(&mut waiting).await, node.uuid);
    // What is refused rings nowhere, nor does a lease that is taken: the next ring is that of the release.
    assert!(one.update_node(Node { version: 7, ..node.clone() }, vec![], None).await.is_err());
    let lease = one.take_lease(node.uuid, "a", Timestamp(0), Timestamp(9)).await.unwrap().unwrap();
    one.release_lease(lease).await.unwrap();
    assert_eq!(heard(&mut waiting).await, node.uuid, "release");
    let quiet = one.create_node(new_node("quiet"), vec![]).await.unwrap().uuid;
    assert_eq!((heard(&mut waiting).await, heard(&mut ears).await), (quiet, quiet));
}

/// A caller that is rung reads what the ring is about: it comes with the commit, not before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_listener_that_is_rung_reads_what_was_written() {
    let _server = shared();
    let (_, [one, other]) = two().await;
    let mut ears = other.bell().listen();
    let mut node = one.create_node(new_node("n"), vec![]).await.unwrap();
    heard(&mut ears).await;
    for _ in 0..200 {
        let version = node.version;
        let (store, before) = (one.clone(), node.clone());
        let write = tokio::spawn(async move { store.update_node(before, vec![], None).await.unwrap() });
        assert_eq!(heard(&mut ears).await, node.uuid);
        assert_eq!(other.node(node.uuid).await.unwrap().version, version + 1);
        node = write.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_rung_while_no_connection_listened_is_looked_for() {
    let _server = shared();
    let (name, [one, other]) = two().await;
    let mut ears = other.bell().listen();
    let busy = one.create_node(new_node("busy"), vec![]).await.unwrap().uuid;
    assert_eq!(heard(&mut ears).await, busy);
    let idle = Node { run: None, ..new_node("idle") };
    let idle = one.create_node(idle, vec![]).await.unwrap().uuid;
    assert_eq!(heard(&mut ears).await, idle);
    let listening = "state = 'idle' AND query LIKE '%at_work%'";
    let end = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{name}' AND {listening}"
    );
    assert_eq!(shared().sql("postgres", &end), "2");
    assert_eq!(heard(&mut ears).await, busy, "something is under way there");
    // And it hears again.
    let row = one.node(idle).await.unwrap();
    one.update_node(row, vec![], None).await.unwrap();
    assert_eq!(heard(&mut ears).await, idle);
}

/// Deadlocks and conflicts are PostgreSQL's answer to what happens at once; no caller sees one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_caller_sees_a_deadlock() {
    let _server = shared();
    let (name, stores) = two().await;
    let nodes = [
        stores[0].create_node(new_node("a"), vec![]).await.unwrap().uuid,
        stores[0].create_node(new_node("b"), vec![]).await.unwrap().uuid,
    ];
    shared().sql(
        &name,
        "ALTER DATABASE CURRENT_DATABASE SET deadlock_timeout = '20ms'"
            .replace("CURRENT_DATABASE", &name)
            .as_str(),
    );
    let stores = [open(&name).await, open(&name).await];
    // A trigger locks the other node as well, so two writes of the two nodes lock them in opposite orders.
    shared().sql(
        &name,
        "CREATE FUNCTION lock_other() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN PERFORM pg_sleep(0.02); PERFORM 1 FROM node WHERE uuid <> new.uuid FOR UPDATE; RETURN new; END $$;
         CREATE TRIGGER lock_other BEFORE UPDATE ON node FOR EACH ROW EXECUTE FUNCTION lock_other();",
    );
    for _ in 0..5 {
        let write = |index: usize| {
            let (store, uuid) = (stores[index].clone(), nodes[index]);
            tokio::spawn(async move {
                let node = store.node(uuid).await.unwrap();
                store.update_node(node, vec![event("e".to_owned())], None).await
            })
        };
        let (a, b) = (write(0), write(1));
        a.await.unwrap().unwrap();
        b.await.unwrap().unwrap();
    }
    for uuid in nodes {
        let (node, history) = (stores[0].node(uuid).await.unwrap(), stores[0].history(uuid).await.unwrap());
        assert_eq!((node.version, history.len()), (6, 5), "each write once");
    }
    // Its counters come some time after.
    let undone = format!("SELECT deadlocks > 0 FROM pg_stat_database WHERE datname = '{name}'");
    let began = std::time::Instant::now();
    while shared().sql(&name, &undone) != "t" {
        assert!(began.elapsed() < Duration::from_secs(30), "there was no deadlock");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_list_is_refused_and_the_connection_goes_on() {
    let _server = shared();
    let (name, [store, _]) = two().await;
    for index in 0..3 {
        let mut node = new_node(&index.to_string());
        node.other.insert("description".into(), "Long".into());
        store.create_node(node, vec![]).await.unwrap();
    }
    // A function in the place of PostgreSQL's, which takes its time.
    shared().sql(
        &name,
        "CREATE FUNCTION public.strpos(text, text) RETURNS integer LANGUAGE sql VOLATILE AS
         $$ SELECT CASE WHEN pg_sleep(5) IS NULL THEN 0 ELSE pg_catalog.strpos($1, $2) END $$;",
    );
    shared().sql(&name, &format!("ALTER DATABASE {name} SET search_path = public, pg_catalog"));
    let store = open(&name).await;
    let filter = NodeFilter { description_contains: Some("long".to_owned()), ..NodeFilter::default() };
    let limit = Duration::from_millis(300);
    let slow = store.node_page(NodeQuery { time_limit: limit, ..NodeQuery::first(5, filter) }).await;
    assert!(matches!(slow, Err(StoreError::TooSlow(of)) if of == limit), "{slow:?}");
    let all = store.node_page(NodeQuery::first(5, NodeFilter::default())).await.unwrap();
    assert_eq!(all.nodes.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_with_a_null_character_is_a_text_like_another() {
    let _server = shared();
    let (_, [store, _]) = two().await;
    let mut node = new_node("a\0b");
    node.other.insert("owner".into(), "p\0".into());
    node.other.insert("shard".into(), "\u{1}\0".into());
    node.other.insert("description".into(), "x\0Y".into());
    let node = store.create_node(node, vec![]).await.unwrap();
    assert_eq!(store.node_by_ident("a\0b").await.unwrap(), node);
    let again = store.create_node(new_node("a\0b"), vec![]).await;
    assert!(matches!(again, Err(StoreError::Duplicate { what: Unique::NodeName, .. })), "{again:?}");
    let found = async |filter| store.node_page(NodeQuery::first(5, filter)).await.unwrap().nodes.len();
    assert_eq!(found(NodeFilter::default().within("p\0")).await, 1);
    assert_eq!(found(NodeFilter::default().within("p")).await, 0);
    let part =
        |part: &str| NodeFilter { description_contains: Some(part.to_owned()), ..NodeFilter::default() };
    assert_eq!((found(part("\0y")).await, found(part("\0x")).await), (1, 0));
    assert_eq!(
        store.count_nodes(&[NodeField::Shard], None).await.unwrap().into_keys().collect::<Vec<_>>(),
        [vec![FieldValue::Text("\u{1}\0".to_owned())]]
    );
    assert_eq!(store.count_nodes(&[NodeField::Shard], Some("p\0")).await.unwrap().len(), 1);
    let nowhere = store.resource(ResourceKind::Port, "\0").await;
    assert!(matches!(nowhere, Err(StoreError::NotFound { .. })), "{nowhere:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_gives_up_leaves_no_transaction_behind() {
    let _server = shared();
    let (name, [store, other]) = two().await;
    let node = store.create_node(new_node("n"), vec![]).await.unwrap();
    let mut ears = store.bell().listen();
    for micros in (0..4000).step_by(97) {
        let write = store.update_node(store.node(node.uuid).await.unwrap(), vec![], None);
        let _ = tokio::time::timeout(Duration::from_micros(micros), write).await;
    }
    // Whatever was under way is undone or committed: the row is free, and what was committed was rung here.
    let read = other.node(node.uuid).await.unwrap();
    let last = match other.update_node(read, vec![], None).await {
        // One of those given up came first.
        Err(StoreError::Stale(_)) => other.node(node.uuid).await.unwrap().version,
        written => written.unwrap().version,
    };
    assert!(last > 1);
    heard(&mut ears).await;
    let idle = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND state LIKE 'idle in transaction%'"
    );
    let began = std::time::Instant::now();
    while shared().sql("postgres", &idle) != "0" {
        assert!(began.elapsed() < Duration::from_secs(20), "a transaction is left open");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_key_program_or_time_is_refused() {
    let _server = shared();
    let name = shared().create();
    let settings = Settings::at(&shared().url(&name));
    assert!(!store_postgres::are_encrypted(&settings).await.unwrap());
    let store = open(&name).await;
    let mut node = new_node("n");
    node.driver_info.insert("redfish_password".into(), "hunter2".into());
    let node = store.create_node(node, vec![]).await.unwrap();
    assert_eq!(store.node(node.uuid).await.unwrap().driver_info["redfish_password"], "hunter2");
    let documents = shared().sql(&name, "SELECT doc FROM node");
    assert!(!documents.contains("hunter2") && documents.contains("sealed:v1:"), "{documents}");
    assert!(store_postgres::are_encrypted(&settings).await.unwrap());

    let wrong = PostgresStore::open(&settings, &DatabaseKey::generate().unwrap()).await;
    assert!(matches!(wrong, Err(OpenError::WrongKey { .. })));
    assert!(matches!(store_postgres::forget(&settings).await, Err(OpenError::InUse { .. })));
    drop(store);
    let forgotten = loop {
        match store_postgres::forget(&settings).await {
            // The server has not seen yet that the controller is gone.
            Err(OpenError::InUse { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
            other => break other.unwrap(),
        }
    };
    assert_eq!(forgotten.len(), 1);
    assert_eq!(
        (forgotten[0].of.as_str(), &forgotten[0].names[..]),
        ("n", &["redfish_password".to_owned()][..])
    );
    let fresh = DatabaseKey::generate().unwrap();
    let store = PostgresStore::open(&settings, &fresh).await.unwrap();
    assert!(!store.node(node.uuid).await.unwrap().driver_info.contains_key("redfish_password"));
    drop(store);

    shared().sql(&name, "UPDATE anneal_schema SET version = version + 1, oldest = version + 1");
    let newer = PostgresStore::open(&settings, &fresh).await.err().unwrap();
    assert!(matches!(newer, OpenError::Newer { found, known, .. } if found == known + 1), "{newer:?}");
    shared().sql(&name, "DROP TABLE anneal_schema");
    let foreign = PostgresStore::open(&settings, &fresh).await.err().unwrap();
    assert!(matches!(foreign, OpenError::Foreign { .. }), "{foreign:?}");
}

/// Two controllers that start at once on an empty database: one migrates it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn controllers_that_start_at_once_agree_on_the_schema() {
    let _server = shared();
    for _ in 0..3 {
        let name = shared().create();
        let opens: Vec<_> = (0..4)
            .map(|_| {
                let name = name.clone();
                tokio::spawn(async move { open(&name).await.nodes().await.unwrap().len() })
            })
            .collect();
        for open in opens {
            assert_eq!(open.await.unwrap(), 0);
        }
        assert_eq!(shared().sql(&name, "SELECT count(*) FROM anneal_schema"), "1");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_certificates_cannot_be_changed() {
    let _server = shared();
    let (name, [store, _]) = two().await;
    let node = store.create_node(new_node("n"), vec![]).await.unwrap();
    store.certify(node.clone(), vec![], None, certificate(node.uuid, 1)).await.unwrap();
    for sql in
        ["UPDATE certificate_log SET seq = 2", "DELETE FROM certificate_log", "TRUNCATE certificate_log"]
    {
        let kept = format!(
            "DO $$ BEGIN {sql}; RAISE EXCEPTION 'it was changed'; EXCEPTION WHEN raise_exception THEN
             IF sqlerrm NOT LIKE '%never changed or cut%' THEN RAISE; END IF; END $$"
        );
        shared().sql(&name, &kept);
    }
    assert_eq!(store.certificate_log(1, 9).await.unwrap().len(), 1);
}

/// A heartbeat does not wait for a write of its node that is under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn heartbeats_do_not_wait_for_the_row_of_the_node() {
    let _server = shared();
    let (name, [store, _]) = two().await;
    let node = store.create_node(new_node("n"), vec![]).await.unwrap().uuid;
    store.grant_token(node, TokenRequest::without_nonce("t", None, Timestamp(0))).await.unwrap();
    // The row is held until the heartbeat is stored.
    let holder = store_holding(&name, node).await;
    let beat = HeartbeatRecord {
        callback_url: "https://192.0.2.1:9999".to_owned(),
        verify_ca: None,
        agent_version: None,
        at: Timestamp(5),
        agent: AgentKind::Ipa,
    };
    store.record_heartbeat(node, "t", beat).await.unwrap();
    assert_eq!(store.contact(node).await.unwrap().last_heartbeat_at, Some(Timestamp(5)));
    holder.batch_execute("COMMIT").await.unwrap();
}

async fn store_holding(name: &str, node: Uuid) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(&shared().url(name), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN").await.unwrap();
    client.execute("SELECT 1 FROM node WHERE uuid = $1 FOR NO KEY UPDATE", &[&node]).await.unwrap();
    client
}

fn logged(events: &[(EventCursor, LoggedEvent)]) -> Vec<&str> {
    events.iter().map(|(_, logged)| logged.event.text.as_str()).collect()
}

/// A transaction that took its place in the sequence before others, and is committed after they were read.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_event_that_is_committed_late_is_read_late_and_not_skipped() {
    let _server = shared();
    let (name, [a, b]) = two().await;
    let node = a.create_node(new_node("n"), vec![event("first".to_owned())]).await.unwrap();
    let start = b.events(None, 9).await.unwrap();
    assert_eq!(logged(&start.events), ["first"]);
    let (late, connection) =
        tokio_postgres::connect(&shared().url(&name), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let add =
        "BEGIN; INSERT INTO event_pending (at, doc) SELECT at, replace(doc, 'first', 'late') FROM event_log";
    late.batch_execute(add).await.unwrap();
    b.update_node(node, vec![event("second".to_owned())], None).await.unwrap();
    let between = a.events(Some(start.next), 9).await.unwrap();
    assert_eq!(logged(&between.events), ["second"], "no reader waits for it");
    late.batch_execute("COMMIT").await.unwrap();
    for store in [&a, &b] {
        assert_eq!(logged(&store.events(Some(between.next), 9).await.unwrap().events), ["late"]);
        assert_eq!(logged(&store.events(Some(start.next), 9).await.unwrap().events), ["second", "late"]);
    }
}

/// What two controllers write and read at once: both read the same, each event once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_controllers_read_one_log() {
    const WRITES: usize = 40;
    let _server = shared();
    let (_, stores) = two().await;
    let write = |store: Arc<PostgresStore>, writer: usize| {
        tokio::spawn(async move {
            let mut node = store.create_node(new_node(&format!("n{writer}")), vec![]).await.unwrap();
            for n in 0..WRITES {
                node = store.update_node(node, vec![event(format!("{writer} {n}"))], None).await.unwrap();
            }
        })
    };
    let read = |store: Arc<PostgresStore>| {
        tokio::spawn(async move {
            let (mut after, mut found) = (None, Vec::new());
            while found.len() < 4 * WRITES {
                let page = store.events(after, 9).await.unwrap();
                after = Some(page.next);
                found.extend(page.events.into_iter().map(|(_, logged)| logged.event.text));
            }
            found
        })
    };
    let readers: Vec<_> = (0..4).map(|reader: usize| read(stores[reader % 2].clone())).collect();
    let writers: Vec<_> = (0..4).map(|writer: usize| write(stores[writer % 2].clone(), writer)).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let mut read = Vec::new();
    for reader in readers {
        read.push(reader.await.unwrap());
    }
    assert!(read.windows(2).all(|two| two[0] == two[1]), "in the same order");
    let once: BTreeSet<&String> = read[0].iter().collect();
    assert_eq!((once.len(), read[0].len()), (4 * WRITES, 4 * WRITES), "each once");
    for writer in 0..4 {
        let own: Vec<_> = read[0].iter().filter(|text| text.starts_with(&format!("{writer} "))).collect();
        assert_eq!(
            own,
            (0..WRITES).map(|n| format!("{writer} {n}")).collect::<Vec<_>>().iter().collect::<Vec<_>>()
        );
    }
}
