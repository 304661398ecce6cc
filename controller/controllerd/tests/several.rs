//! Three real controllers on one PostgreSQL: each drives its nodes, and those of one that dies, is stopped or ends are driven by
//! the others.

mod cluster;

use cluster::{Api, Controller, LIMIT};
use nix::sys::signal::Signal;
use postgres_server::{Durability, Server};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

const NAMES: [&str; 3] = ["c1", "c2", "c3"];
const NODES: usize = 40;

/// Controller `name`, whose state is below `dir`; its API.
fn controller(name: &str, dir: &Path, url: &str) -> (Controller, Api) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (config, log) = (dir.join(format!("{name}.toml")), dir.join(format!("{name}.log")));
    // One key for all: what one has encrypted, the others read.
    let text = format!(
        "host = {name:?}\nstate_dir = {:?}\ndatabase_key_file = {:?}\n[database]\nurl = {url:?}\n[api]\n\
         listen = [\"127.0.0.1:{port}\"]\nauth_strategy = \"noauth\"\n",
        dir.join(name),
        dir.join("key"),
    );
    std::fs::write(&config, text).unwrap();
    (Controller::start(&config, &log), Api::at(port))
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds().await {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The controllers that one of them says are alive.
async fn alive(api: &Api) -> BTreeSet<String> {
    let all = api.insist("GET", "/v1/conductors", Value::Null).await;
    let all = all["conductors"].as_array().unwrap().iter().filter(|one| one["alive"] == true);
    all.map(|one| one["hostname"].as_str().unwrap().to_owned()).collect()
}

/// How many nodes each drives.
async fn driven(api: &Api) -> BTreeMap<String, usize> {
    let nodes = api.insist("GET", "/v1/nodes?fields=conductor", Value::Null).await;
    let mut counts = BTreeMap::new();
    for node in nodes["nodes"].as_array().unwrap() {
        *counts.entry(node["conductor"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    counts
}

async fn ask_all(api: &Api, verb: &str) {
    for index in 0..NODES {
        api.insist("PUT", &format!("/v1/nodes/n{index}/states/provision"), json!({"target": verb})).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_arrive_whichever_controller_dies_is_stopped_or_ends() {
    let server = Server::start(Durability::Full);
    let url = server.url(&server.create());
    let dir = tempfile::tempdir().unwrap();
    let (_first, api) = controller("c1", dir.path(), &url);
    let all: BTreeSet<String> = NAMES.map(str::to_owned).into();
    until("the first serves", async || api.ask("GET", "/v1/conductors", Value::Null).await.is_some()).await;
    let (second, _) = controller("c2", dir.path(), &url);
    let (mut third, third_api) = controller("c3", dir.path(), &url);
    until("all three are alive", async || alive(&api).await == all).await;

    for index in 0..NODES {
        let info = json!({"fake_power_latency_ms": 200});
        let node = json!({"name": format!("n{index}"), "driver": "fake-hardware", "driver_info": info});
        api.insist("POST", "/v1/nodes", node).await;
    }
    ask_all(&api, "manage").await;
    api.wait_for_all("manageable").await;
    let drivers = async || driven(&api).await.into_keys().collect::<BTreeSet<_>>();
    until("each drives some", async || drivers().await == all).await;

    // In the middle of passes, one dies and one is stopped.
    ask_all(&api, "provide").await;
    third.signal(Signal::SIGSTOP);
    drop(second);
    let begun = Instant::now();
    until("the others are gone", async || alive(&api).await == BTreeSet::from(["c1".to_owned()])).await;
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    api.wait_for_all("available").await;
    // What a controller shows goes by what it has read of the others last.
    let alone = BTreeMap::from([("c1".to_owned(), NODES)]);
    until("the first drives all", async || driven(&api).await == alone).await;

    // It goes on, and finds its leases lost.
    third.signal(Signal::SIGCONT);
    let two = BTreeSet::from(["c1".to_owned(), "c3".to_owned()]);
    until("the third is back", async || alive(&api).await == two && alive(&third_api).await == two).await;
    until("both drive some", async || drivers().await == two).await;
    ask_all(&third_api, "manage").await;
    third_api.wait_for_all("manageable").await;
    ask_all(&third_api, "provide").await;
    third.signal(Signal::SIGTERM);
    third.ended();
    api.wait_for_all("available").await;
    let nodes = api.insist("GET", "/v1/nodes?fields=name,last_error,reservation", Value::Null).await;
    for node in nodes["nodes"].as_array().unwrap() {
        assert_eq!(node["last_error"], Value::Null, "{node}");
    }
    until("no node is locked", async || {
        let nodes = api.insist("GET", "/v1/nodes?fields=reservation", Value::Null).await;
        nodes["nodes"].as_array().unwrap().iter().all(|node| node["reservation"].is_null())
    })
    .await;
    assert_eq!(alive(&api).await, BTreeSet::from(["c1".to_owned()]));
}
