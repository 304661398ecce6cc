//! Three real controllers in the middle of cleanings, and PostgreSQL dies: it is started again, or a synchronous standby takes
//! its place.

mod cluster;

use cluster::{Api, Controller, LIMIT};
use postgres_server::{Durability, PASSWORD, Server};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, spawn_blocking};

const NODES: usize = 200;
/// Nodes that are asked for something at once.
const AT_ONCE: usize = 8;

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Controllers on one database, with one key.
fn controllers(dir: &Path, url: &str) -> Vec<(Controller, Arc<Api>)> {
    let password = dir.join("password");
    std::fs::write(&password, PASSWORD).unwrap();
    let start = |name: &str| {
        let port = free_port();
        let (config, log) = (dir.join(format!("{name}.toml")), dir.join(format!("{name}.log")));
        let text = format!(
            "host = {name:?}\nstate_dir = {:?}\ndatabase_key_file = {:?}\n[database]\nurl = {url:?}\n\
             password_file = {password:?}\nconnect_timeout_s = 2\n[api]\nlisten = [\"127.0.0.1:{port}\"]\n\
             auth_strategy = \"noauth\"\n",
            dir.join(name),
            dir.join("key"),
        );
        std::fs::write(&config, text).unwrap();
        (Controller::start(&config, &log), Arc::new(Api::at(port)))
    };
    // The first makes the key and the tables.
    let first = start("c1");
    let deadline = Instant::now() + LIMIT;
    while !dir.join("key").exists() {
        assert!(Instant::now() < deadline, "the first controller makes no key");
        std::thread::sleep(Duration::from_millis(50));
    }
    vec![first, start("c2"), start("c3")]
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds().await {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Ask all nodes for a verb, some at a time, until each is on its way: a request that had no answer may have been done all the
/// same.
async fn ask_all(apis: &[Arc<Api>], verb: &'static str, from: &'static str) {
    let mut tasks = tokio::task::JoinSet::new();
    for part in 0..AT_ONCE {
        let api = apis[part % apis.len()].clone();
        tasks.spawn(async move {
            for index in (part..NODES).step_by(AT_ONCE) {
                let path = format!("/v1/nodes/n{index}");
                let deadline = Instant::now() + LIMIT;
                while api.insist("GET", &path, Value::Null).await["provision_state"] == from {
                    api.ask("PUT", &format!("{path}/states/provision"), json!({"target": verb})).await;
                    assert!(Instant::now() < deadline, "n{index}: {verb} is not accepted");
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}

/// Nodes that can be cleaned, each call to whose BMC takes a moment.
async fn nodes(apis: &[Arc<Api>]) {
    for index in 0..NODES {
        let info = json!({"fake_power_latency_ms": 100});
        let node = json!({"name": format!("n{index}"), "driver": "fake-hardware", "driver_info": info});
        apis[0].insist("POST", "/v1/nodes", node).await;
    }
    ask_all(apis, "manage", "enroll").await;
    apis[0].wait_for_all("manageable").await;
}

/// Until so many of the nodes are clean.
async fn are_available(api: &Api, wanted: usize) {
    until("nodes are cleaned", async || {
        api.states().await.iter().filter(|state| *state == "available").count() >= wanted
    })
    .await;
}

/// Every node is clean; none has failed at any time, and each was cleaned once.
async fn all_arrived(api: &Api) {
    api.wait_for_all("available").await;
    for index in 0..NODES {
        let node = api.insist("GET", &format!("/v1/nodes/n{index}"), Value::Null).await;
        assert_eq!((&node["last_error"], &node["maintenance"]), (&Value::Null, &json!(false)), "{node}");
        let history =
            api.insist("GET", &format!("/v1/nodes/n{index}/history?detail=true"), Value::Null).await;
        let events: Vec<&Value> = history["history"].as_array().unwrap().iter().collect();
        assert!(events.iter().all(|event| event["severity"] != "ERROR"), "{events:?}");
        let arrivals =
            events.iter().filter(|event| event["event"].as_str().unwrap().contains("-> available"));
        assert_eq!(arrivals.count(), 1, "{events:?}");
    }
}

/// Writes a number into a node of its own, one larger each time; the largest that was acknowledged.
fn count_up(api: Arc<Api>, stop: Arc<AtomicBool>) -> (Arc<AtomicU64>, JoinHandle<()>) {
    let acknowledged = Arc::new(AtomicU64::new(0));
    let largest = acknowledged.clone();
    let task = tokio::spawn(async move {
        for number in 1_u64.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let patch = json!([{"op": "add", "path": "/extra/number", "value": number}]);
            if api.ask("PATCH", "/v1/nodes/counter", patch).await.is_some() {
                largest.store(number, Ordering::Relaxed);
            }
        }
    });
    (acknowledged, task)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_cleanings_go_on_after_postgresql_was_killed_and_started_again() {
    let mut server = Server::start(Durability::Full);
    let name = server.create();
    let dir = tempfile::tempdir().unwrap();
    let running = controllers(dir.path(), &server.url(&name));
    let apis: Vec<Arc<Api>> = running.iter().map(|(_, api)| api.clone()).collect();
    nodes(&apis).await;
    let asking = {
        let apis = apis.clone();
        tokio::spawn(async move { ask_all(&apis, "provide", "manageable").await })
    };
    for part in 1..4 {
        are_available(&apis[0], part * NODES / 5).await;
        server = spawn_blocking(move || {
            server.kill();
            // Gone for some time, not only for a moment.
            std::thread::sleep(Duration::from_millis(700) * u32::try_from(part).unwrap());
            server.run();
            server
        })
        .await
        .unwrap();
    }
    asking.await.unwrap();
    all_arrived(&apis[0]).await;
}

/// The primary, and the settings that a server needs to be reached over TCP at this port.
fn reached(port: u16) -> [String; 2] {
    ["listen_addresses=127.0.0.1".to_owned(), format!("port={port}")]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_cleanings_go_on_at_the_synchronous_standby() {
    let ports = [free_port(), free_port()];
    let settings = ports.map(reached);
    let [of_primary, of_standby] = settings.each_ref().map(|both| both.each_ref().map(String::as_str));
    let mut primary = Server::with(Durability::Full, &of_primary);
    let name = primary.create();
    let mut standby = primary.standby("db2", &of_standby);
    primary.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'db2'");
    primary.sql("postgres", "SELECT pg_reload_conf()");
    let is_synchronous = || {
        primary.sql("postgres", "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
    };
    until("the standby is synchronous", async || is_synchronous()).await;

    let dir = tempfile::tempdir().unwrap();
    let hosts = ports.map(|port| format!("127.0.0.1:{port}")).join(",");
    let url = format!("postgres://postgres@{hosts}/{name}?target_session_attrs=read-write");
    let running = controllers(dir.path(), &url);
    let apis: Vec<Arc<Api>> = running.iter().map(|(_, api)| api.clone()).collect();
    nodes(&apis).await;
    apis[0].insist("POST", "/v1/nodes", json!({"name": "counter", "driver": "fake-hardware"})).await;

    // Without the standby writes wait, since they could be lost; reads do not.
    standby.stop();
    let patch = json!([{"op": "add", "path": "/extra/waited", "value": true}]);
    let api = apis[0].clone();
    let waiting = tokio::spawn(async move { api.ask("PATCH", "/v1/nodes/counter", patch).await.is_some() });
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(apis[0].ask("GET", "/v1/nodes/n0", Value::Null).await.is_some());
    assert!(!waiting.is_finished(), "a write is acknowledged that the standby does not have");
    standby = spawn_blocking(move || {
        standby.run();
        standby
    })
    .await
    .unwrap();
    assert!(waiting.await.unwrap(), "it is done when the standby is back");

    let stop = Arc::new(AtomicBool::new(false));
    let (acknowledged, counting) = count_up(apis[1].clone(), stop.clone());
    let asking = {
        let apis = apis.clone();
        tokio::spawn(async move { ask_all(&apis, "provide", "manageable").await })
    };
    are_available(&apis[0], NODES / 4).await;
    let epoch =
        |server: &Server| -> i64 { server.sql(&name, "SELECT last_value FROM lease_epoch").parse().unwrap() };
    let before = epoch(&primary);
    let lost = acknowledged.clone();
    spawn_blocking(move || primary.kill()).await.unwrap();
    let at_the_kill = lost.load(Ordering::Relaxed);
    assert!(at_the_kill > 0, "nothing was written before the kill");
    let standby = spawn_blocking(move || {
        standby.promote();
        standby
    })
    .await
    .unwrap();
    assert!(epoch(&standby) >= before, "epochs go back");
    let promoted = Instant::now();
    until("writes go on", async || acknowledged.load(Ordering::Relaxed) > at_the_kill).await;
    println!("the first write {:?} after the standby was promoted", promoted.elapsed());
    asking.await.unwrap();
    stop.store(true, Ordering::Relaxed);
    counting.await.unwrap();
    let counter = apis[2].insist("GET", "/v1/nodes/counter", Value::Null).await;
    assert!(
        counter["extra"]["number"].as_u64().unwrap() >= acknowledged.load(Ordering::Relaxed),
        "{counter}"
    );
    apis[2].ask("DELETE", "/v1/nodes/counter", Value::Null).await;
    all_arrived(&apis[2]).await;
}
