//! Another server takes over: an asynchronous standby, which lacks the last writes. Epochs never go back all the same.

use model::{Node, Timestamp};
use postgres_server::{Durability, Server};
use std::time::{Duration, Instant};
use store::prelude::*;
use store_postgres::{DatabaseKey, PostgresStore, Settings};
use uuid::Uuid;

/// PostgreSQL notes 32 numbers of a sequence ahead.
const LOST: i64 = 200;

async fn take(store: &PostgresStore, node: Uuid, number: i64) -> u64 {
    let (now, until) = (Timestamp(10 * number), Timestamp(10 * number + 10));
    store.take_lease(node, "c", now, until).await.unwrap().unwrap().epoch
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_do_not_go_back_where_the_last_writes_are_lost() {
    let mut primary = Server::start(Durability::Full);
    let name = primary.create();
    let mut standby = primary.standby("late", &[]);
    let hosts = [&primary, &standby].map(|server| server.dir().to_str().unwrap().replace('/', "%2F"));
    let url = format!("postgres://postgres@{}/{name}?target_session_attrs=read-write", hosts.join(","));
    let settings = Settings { connect_timeout: Duration::from_secs(20), ..Settings::at(&url) };
    let store = PostgresStore::open(&settings, &DatabaseKey::generate().unwrap()).await.unwrap();
    let node = Node::enrolled(Uuid::new_v4(), "fake-hardware", Timestamp(0));
    let node = store.create_node(node, vec![]).await.unwrap();
    let first = take(&store, node.uuid, 1).await;
    let began = Instant::now();
    // The table comes first.
    for (replayed, shows) in
        [("SELECT to_regclass('lease') IS NOT NULL", "t"), ("SELECT count(*) FROM lease", "1")]
    {
        while standby.sql(&name, replayed) != shows {
            assert!(began.elapsed() < Duration::from_secs(60), "the standby does not follow");
        }
    }
    standby.stop();
    let mut last = first;
    for number in 2..LOST {
        let epoch = take(&store, node.uuid, number).await;
        assert!(epoch > last);
        last = epoch;
    }
    // It knows nothing of all that.
    primary.kill();
    standby.run();
    standby.promote();
    let given: i64 = standby.sql(&name, "SELECT last_value FROM lease_epoch").parse().unwrap();
    assert!(given < LOST / 2, "no number was lost: {given}");
    let after = take(&store, node.uuid, LOST).await;
    assert!(after > last, "{after} after {last}");
    // JSON of other programs has numbers up to 2^53.
    assert!(after < 1 << 53);
    assert_eq!(store.node(node.uuid).await.unwrap(), node);
}
