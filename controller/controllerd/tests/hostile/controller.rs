//! A controller process of a test, and its operator.

use reqwest::Client;
use serde_json::{Value, json};
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// A test waits this long at most for a condition.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running controller; dropping it kills the process.
pub struct Controller {
    pub dir: tempfile::TempDir,
    /// The operators' address, plain.
    pub api: SocketAddr,
    process: Child,
    client: Client,
}

/// A port that nothing listens on, another one with each call. Below the range (32768 up) from which the kernel takes the
/// ports of the many clients of these tests.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 100).unwrap() * 100;
    let ports = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed));
    ports.take(100).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}

/// The program with its configuration in `dir`, not started. `extra` goes below `[api]`.
pub fn command(dir: &Path, listen: &str, extra: &str) -> Command {
    let config = dir.join("controller.toml");
    let noauth = if extra.contains("auth_strategy") { "" } else { "auth_strategy = \"noauth\"\n" };
    let text = format!(
        "state_dir = {:?}\nlog = \"info,http_server=debug\"\n[api]\nlisten = [{listen}]\n{noauth}{extra}",
        dir.join("state")
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_anneal-controller"));
    command.arg("--config").arg(config).stderr(File::create(dir.join("log")).unwrap());
    command
}

impl Controller {
    /// Start with a plain API port and these settings, and wait until it serves.
    pub async fn start(extra: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = free_port();
        let command = command(dir.path(), &format!("\"127.0.0.1:{port}\""), extra);
        Self::run(dir, port, command).await
    }

    /// Run a command whose plain API port is `port`, and wait until it serves.
    pub async fn run(dir: tempfile::TempDir, port: u16, mut command: Command) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        let process = command.spawn().unwrap();
        let mut started = Self { dir, api: ([127, 0, 0, 1], port).into(), process, client };
        let deadline = Instant::now() + PATIENCE;
        while started.get("/v1").await.is_none() {
            assert!(started.process.try_wait().unwrap().is_none(), "it ended: {}", started.log());
            assert!(Instant::now() < deadline, "it does not serve: {}", started.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        started.wait_for_log("is ready").await;
        started
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    pub async fn wait_for_log(&self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.log().contains(text) {
            assert!(Instant::now() < deadline, "{text:?} is not in {}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Status and body of a request by the operator; `None` if it got no answer.
    pub async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Option<(u16, Value)> {
        let url = format!("http://{}{path}", self.api);
        let mut request = self.client.request(method.parse().unwrap(), url);
        request = request.header("x-openstack-ironic-api-version", "1.82");
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        Some((status, answer.json().await.unwrap_or(Value::Null)))
    }

    /// The body of a good answer.
    pub async fn get(&self, path: &str) -> Option<Value> {
        self.ask("GET", path, None).await.filter(|(status, _)| *status == 200).map(|(_, body)| body)
    }

    /// Enrol a node and make it manageable: API, store and conductor take part.
    pub async fn make_manageable(&self, name: &str) {
        let node = json!({"name": name, "driver": "fake-hardware"});
        let (status, body) = self.ask("POST", "/v1/nodes", Some(node)).await.expect("an answer");
        assert_eq!(status, 201, "{body}");
        let target = Some(json!({"target": "manage"}));
        let put = self.ask("PUT", &format!("/v1/nodes/{name}/states/provision"), target).await;
        assert_eq!(put.expect("an answer").0, 202);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let node = self.get(&format!("/v1/nodes/{name}")).await.expect("the node");
            if node["provision_state"] == "manageable" {
                return;
            }
            assert!(Instant::now() < deadline, "{node}\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
