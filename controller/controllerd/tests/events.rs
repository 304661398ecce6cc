//! A client that follows the events of a real controller, which is killed again and again: none is lost and none comes twice,
//! compared with the histories of all nodes. And webhooks of a real controller.

mod cluster;

use cluster::{Api, Controller, LIMIT};
use nix::sys::signal::Signal;
use reqwest::Client;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const NODES: usize = 6;

/// How often the controller is killed: `soak --part events` asks for more.
fn kills() -> usize {
    std::env::var("ANNEAL_EVENT_KILLS").map_or(10, |text| text.parse().expect("a number"))
}

/// A controller that can be killed and started again.
struct Place {
    dir: TempDir,
    port: u16,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let text = format!(
            "state_dir = {:?}\nhost = \"c1\"\n[api]\nlisten = [\"127.0.0.1:{port}\"]\nauth_strategy = \"noauth\"\n",
            dir.path().join("state")
        );
        std::fs::write(dir.path().join("controller.toml"), text).unwrap();
        Self { dir, port }
    }

    fn start(&self) -> Controller {
        Controller::start(&self.dir.path().join("controller.toml"), &self.dir.path().join("log"))
    }

    /// Change its configuration for the next start.
    fn configure(&self, change: impl FnOnce(String) -> String) {
        let path = self.dir.path().join("controller.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, change(text)).unwrap();
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// What a client has received.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<Value>>>);

impl Received {
    fn events(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }

    async fn wait(&self, what: &str, enough: impl Fn(&[Value]) -> bool) {
        let begun = Instant::now();
        while !enough(&self.events()) {
            assert!(begun.elapsed() < LIMIT, "{what}: {} events came", self.events().len());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Follows the stream, and goes on where it was whenever it breaks off.
async fn follow(url: String, received: Received) {
    let client = Client::builder().no_proxy().build().unwrap();
    let mut last = String::new();
    loop {
        let request = client.get(format!("{url}/v1/anneal/events")).header("accept", "text/event-stream");
        if let Ok(mut answer) = request.header("last-event-id", &last).send().await {
            assert_eq!(answer.status(), 200);
            let mut text = String::new();
            while let Ok(Some(chunk)) = answer.chunk().await {
                text.push_str(std::str::from_utf8(&chunk).unwrap());
                // What has no end was cut off, and comes again.
                while let Some((block, rest)) = text.split_once("\n\n") {
                    for line in block.lines() {
                        match line.split_once(": ") {
                            Some(("id", id)) => id.clone_into(&mut last),
                            Some(("data", data)) => {
                                received.0.lock().unwrap().push(serde_json::from_str(data).unwrap());
                            }
                            _ => {}
                        }
                    }
                    text = rest.to_owned();
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Sends a node to and fro between `manageable` and `available`, if it is at rest.
async fn drive(api: &Api, name: &str) {
    let path = format!("/v1/nodes/{name}");
    let Some(node) = api.ask("GET", &path, Value::Null).await else { return };
    let target = match node["provision_state"].as_str() {
        Some("enroll" | "available") => "manage",
        Some("manageable") => "provide",
        _ => return,
    };
    api.ask("PUT", &format!("{path}/states/provision"), json!({"target": target})).await;
    let reason = json!({"reason": "a test"});
    api.ask("PUT", &format!("{path}/maintenance"), reason).await;
    api.ask("DELETE", &format!("{path}/maintenance"), Value::Null).await;
}

/// Nothing is under way any more.
async fn rest(api: &Api) {
    let begun = Instant::now();
    loop {
        let states = api.states().await;
        if states.iter().all(|state| ["enroll", "manageable", "available"].contains(&state.as_str())) {
            return;
        }
        assert!(begun.elapsed() < LIMIT, "{states:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The ids of the events of each node's history, in its order.
async fn histories(api: &Api) -> BTreeMap<String, Vec<String>> {
    let mut histories = BTreeMap::new();
    for index in 0..NODES {
        let node = api.insist("GET", &format!("/v1/nodes/n{index}"), Value::Null).await;
        let history = api.insist("GET", &format!("/v1/nodes/n{index}/history"), Value::Null).await;
        let ids = history["history"].as_array().unwrap().iter().map(|event| text(event, "uuid"));
        histories.insert(text(&node, "uuid"), ids.collect());
    }
    histories
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap().to_owned()
}

/// What was received, as histories: without the kinds of events that those do not have.
fn as_histories(events: &[Value]) -> BTreeMap<String, Vec<String>> {
    let mut histories: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in events
        .iter()
        .filter(|event| !["change", "record", "deleted"].contains(&event["type"].as_str().unwrap()))
    {
        histories.entry(text(event, "node_uuid")).or_default().push(text(event, "uuid"));
    }
    histories
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_follows_gets_each_event_once_although_the_controller_is_killed() {
    let place = Place::new();
    let api = Api::at(place.port);
    let mut controller = place.start();
    let received = Received::default();
    let following = tokio::spawn(follow(place.url(), received.clone()));
    for index in 0..NODES {
        api.insist("POST", "/v1/nodes", json!({"name": format!("n{index}"), "driver": "fake-hardware"}))
            .await;
    }
    for kill in 0..kills() {
        let before = received.events().len();
        for index in 0..NODES {
            drive(&api, &format!("n{index}")).await;
        }
        // At another moment each time: between two events that the client gets, and while the nodes move.
        received.wait("before a kill", |events| events.len() > before + kill % 7).await;
        controller.signal(Signal::SIGKILL);
        drop(controller);
        controller = place.start();
        rest(&api).await;
    }
    rest(&api).await;
    let histories = histories(&api).await;
    let newest = |events: &[Value]| {
        let received = as_histories(events);
        histories
            .iter()
            .all(|(node, history)| received.get(node).is_some_and(|got| got.last() == history.last()))
    };
    received.wait("at the end", newest).await;
    following.abort();
    let events = received.events();
    let ids: Vec<String> = events.iter().map(|event| text(event, "uuid")).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "each once");
    assert_eq!(pages(&api).await, ids, "the stream is the log");
    for (node, got) in as_histories(&events) {
        let history = &histories[&node];
        // A history keeps the newest 1,000.
        let whole = history.len() < 1000;
        assert!(if whole { got == *history } else { got.ends_with(history) }, "{node}: {got:?} {history:?}");
    }
    assert!(events.len() > 5 * kills(), "only {} events", events.len());
}

/// The ids of the events of the whole log, read in pages.
async fn pages(api: &Api) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), String::new());
    loop {
        let page = api.insist("GET", &format!("/v1/anneal/events?limit=50&after={after}"), Value::Null).await;
        ids.extend(page["events"].as_array().unwrap().iter().map(|event| text(event, "uuid")));
        after = text(&page, "next");
        if page["more"] == false {
            return ids;
        }
    }
}

/// The client of the documentation, as it stands there.
struct DocumentedClient(Child);

impl DocumentedClient {
    fn start(dir: &Path, url: &str, received: Received) -> Self {
        let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/events.md");
        let page = std::fs::read_to_string(page).unwrap();
        let program = page.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
        assert!(program.lines().count() <= 10, "a client of ten lines");
        let path = dir.join("client.py");
        std::fs::write(&path, program).unwrap();
        let mut process = Command::new("python3").arg(path).arg(url).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines() {
                received.0.lock().unwrap().push(Value::String(line.unwrap()));
            }
        });
        Self(process)
    }
}

impl Drop for DocumentedClient {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_of_the_documentation_goes_on_over_a_restart() {
    let place = Place::new();
    let api = Api::at(place.port);
    let mut controller = place.start();
    api.insist("GET", "/v1/nodes", Value::Null).await;
    let received = Received::default();
    let _client = DocumentedClient::start(place.dir.path(), &place.url(), received.clone());
    api.insist("POST", "/v1/nodes", json!({"name": "n0", "driver": "fake-hardware"})).await;
    received.wait("the first event", |lines| !lines.is_empty()).await;
    controller.signal(Signal::SIGTERM);
    controller.ended();
    drop(controller);
    let _controller = place.start();
    api.insist("PUT", "/v1/nodes/n0/maintenance", json!({"reason": "fan"})).await;
    received.wait("the second event", |lines| lines.len() > 1).await;
    let lines = received.events();
    assert!(lines[0].as_str().unwrap().ends_with(" n0 enrolled with driver fake-hardware"), "{lines:?}");
    assert!(lines[1].as_str().unwrap().ends_with(" n0 maintenance set by a user: fan"), "{lines:?}");
    assert_eq!(lines.len(), 2, "{lines:?}");
}

/// A stream is open for longer than a client may be idle, or take for a request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limits_in_time_of_connections_do_not_end_a_stream() {
    let place = Place::new();
    let limits = "[connections]\nhead_timeout_s = 1\nbody_timeout_s = 1\nidle_timeout_s = 1\n";
    place.configure(|text| text + limits);
    let _controller = place.start();
    let api = Api::at(place.port);
    api.insist("GET", "/v1/nodes", Value::Null).await;
    let client = Client::builder().no_proxy().build().unwrap();
    let request =
        client.get(format!("{}/v1/anneal/events", place.url())).header("accept", "text/event-stream");
    let mut answer = request.send().await.unwrap();
    assert!(answer.chunk().await.unwrap().is_some());
    let begun = Instant::now();
    let alive = answer.chunk().await.unwrap().expect("a comment");
    assert!(alive.starts_with(b": keep-alive") && begun.elapsed() > Duration::from_secs(3), "{alive:?}");
}

/// A receiver of webhooks, which takes every event; its URL.
fn receiver(received: Received) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let received = received.clone();
            std::thread::spawn(move || take_all(connection.unwrap(), &received));
        }
    });
    url
}

/// Take what comes on a connection, until the other side closes it.
fn take_all(mut connection: TcpStream, received: &Received) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or_default() == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        received.0.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
        connection.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    }
}

/// The controller that delivers to the only webhook.
async fn who_delivers(api: &Api) -> Value {
    api.insist("GET", "/v1/anneal/webhooks", Value::Null).await["webhooks"][0]["conductor"].clone()
}

/// A controller that is stopped gives its webhooks back, so that another need not wait until its time is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_is_handed_over_when_its_controller_stops() {
    let place = Place::new();
    let received = Received::default();
    let secret = place.dir.path().join("secret");
    std::fs::write(&secret, "a secret of 16 or more\n").unwrap();
    let url = receiver(received.clone());
    let webhook =
        format!("[webhooks.cmdb]\nurl = {url:?}\nsecret_file = {secret:?}\ntypes = [\"transition\"]\n");
    place.configure(|text| text + &webhook);
    let api = Api::at(place.port);
    let mut controller = place.start();
    let begun = Instant::now();
    while who_delivers(&api).await != "c1" {
        assert!(begun.elapsed() < LIMIT, "the webhook is not taken");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    api.insist("POST", "/v1/nodes", json!({"name": "n0", "driver": "fake-hardware"})).await;
    received.wait("the first event", |events| !events.is_empty()).await;
    controller.signal(Signal::SIGTERM);
    controller.ended();
    drop(controller);

    place.configure(|text| text.replace("\"c1\"", "\"c2\""));
    let _controller = place.start();
    let begun = Instant::now();
    api.insist("POST", "/v1/nodes", json!({"name": "n1", "driver": "fake-hardware"})).await;
    received.wait("the second event", |events| events.len() > 1).await;
    assert!(begun.elapsed() < Duration::from_secs(25), "the first held it for 30 s: {:?}", begun.elapsed());
    let names: Vec<String> = received.events().iter().map(|event| text(event, "node_name")).collect();
    assert_eq!(names, ["n0", "n1"]);
    assert_eq!(who_delivers(&api).await, "c2");
}
