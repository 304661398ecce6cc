//! A controller process with metrics.

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A test waits this long at most for a condition.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A running controller.
pub struct Controller {
    pub dir: PathBuf,
    pub api: u16,
    pub metrics: u16,
    pub boot: u16,
    pub client: Client,
    process: Child,
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that nothing listens on now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub fn client() -> Client {
    // All is plain HTTP on loopback; the client wants a provider all the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().timeout(PATIENCE).build().unwrap()
}

/// Wait until `holds` is true.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "it does not come to this: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

impl Controller {
    /// One with its state in `dir/state`. `api` goes below `[api]`, `metrics` below `[metrics]`.
    pub async fn start(dir: &Path, api: &str, metrics: &str) -> Self {
        let (ports, client) = ([free_port(), free_port(), free_port()], client());
        let [port, metrics_port, boot] = ports;
        for name in ["vmlinuz", "initramfs"] {
            std::fs::write(dir.join(name), name).unwrap();
        }
        let text = format!(
            "state_dir = {state:?}\n\
             [api]\nlisten = [\"127.0.0.1:{port}\"]\n{api}\n\
             [agent]\nrequire_tls = false\nlookup_without_nonce = true\n\
             [conductor]\npower_sync_s = 1\nmax_passes = 8\nlogs_collect = \"never\"\n\
             [boot]\nenabled = true\naddress = \"127.0.0.1\"\ntftp = false\nhttp_port = {boot}\nkernel = {kernel:?}\n\
             initramfs = {initramfs:?}\n\
             [metrics]\nlisten = [\"127.0.0.1:{metrics_port}\"]\n{metrics}\n",
            state = dir.join("state"),
            kernel = dir.join("vmlinuz"),
            initramfs = dir.join("initramfs"),
        );
        let config = dir.join("controller.toml");
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_anneal-controller"));
        command.arg("--config").arg(config).stderr(File::create(dir.join("log")).unwrap());
        let process = command.spawn().unwrap();
        let mut this = Self { dir: dir.to_owned(), api: port, metrics: metrics_port, boot, client, process };
        let deadline = Instant::now() + PATIENCE;
        while !this.log().contains("is ready") {
            assert!(this.process.try_wait().unwrap().is_none(), "it ended: {}", this.log());
            assert!(Instant::now() < deadline, "{}", this.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        this
    }

    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Status and body of a request to the API.
    pub async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let url = format!("http://127.0.0.1:{}{path}", self.api);
        let request = self.client.request(method.parse().unwrap(), url);
        let mut request = request.header("x-openstack-ironic-api-version", "1.109");
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or(Value::Null))
    }

    /// A request that must succeed.
    pub async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let body = Some(body).filter(|body| !body.is_null());
        let (status, answer) = self.ask(method, path, body).await;
        assert!(status.is_success(), "{method} {path}: {status} {answer}\n{}", self.log());
        answer
    }

    /// A new node; gives its UUID.
    pub async fn enrol(&self, node: Value) -> String {
        self.call("POST", "/v1/nodes", node).await["uuid"].as_str().unwrap().to_owned()
    }

    /// Ask for a provision target.
    pub async fn provision(&self, node: &str, body: Value) {
        let path = format!("/v1/nodes/{node}/states/provision");
        eventually("the node is not locked", async || {
            let (status, answer) = self.ask("PUT", &path, Some(body.clone())).await;
            assert!(status.is_success() || status == StatusCode::CONFLICT, "{body}: {answer}");
            status.is_success()
        })
        .await;
    }

    pub async fn until(&self, node: &str, state: &str) {
        let what = format!("{node} is in {state}");
        eventually(&what, async || {
            let found = self.call("GET", &format!("/v1/nodes/{node}"), Value::Null).await;
            found["provision_state"] == state
        })
        .await;
    }

    /// A new node of these fields, made manageable.
    pub async fn manageable(&self, node: Value) -> String {
        let node = self.enrol(node).await;
        self.provision(&node, json!({"target": "manage"})).await;
        self.until(&node, "manageable").await;
        node
    }

    /// The metrics.
    pub async fn scrape(&self) -> String {
        let url = format!("http://127.0.0.1:{}/metrics", self.metrics);
        self.client.get(url).send().await.unwrap().error_for_status().unwrap().text().await.unwrap()
    }
}
