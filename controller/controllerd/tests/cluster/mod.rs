//! Real controllers, and their API.
#![allow(dead_code, reason = "each test uses a part")]

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reqwest::Client;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long anything may take.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A controller, which is killed when it is dropped.
pub struct Controller(Child);

impl Controller {
    /// Start it, with its log in a file.
    pub fn start(config: &Path, log: &Path) -> Self {
        let process = Command::new(env!("CARGO_BIN_EXE_anneal-controller"))
            .arg("--config")
            .arg(config)
            .stderr(File::options().create(true).append(true).open(log).unwrap())
            .spawn()
            .unwrap();
        Self(process)
    }

    /// Send it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().try_into().unwrap()), signal).unwrap();
    }

    /// Wait until it has ended by itself.
    pub fn ended(&mut self) {
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The API of one.
pub struct Api {
    client: Client,
    port: u16,
}

impl Api {
    /// That of the controller at this port of loopback.
    pub fn at(port: u16) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { client: Client::builder().no_proxy().build().unwrap(), port }
    }

    /// The answer, if it is a success.
    pub async fn ask(&self, method: &str, path: &str, body: Value) -> Option<Value> {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let request = self.client.request(method.parse().unwrap(), url);
        let request = request.header("x-openstack-ironic-api-version", "1.82");
        let request = if body.is_null() { request } else { request.json(&body) };
        let answer = request.send().await.ok()?;
        let good = answer.status().is_success();
        let text = answer.text().await.ok()?;
        good.then(|| serde_json::from_str(&text).unwrap_or_default())
    }

    /// Ask until it is accepted.
    pub async fn insist(&self, method: &str, path: &str, body: Value) -> Value {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(answer) = self.ask(method, path, body.clone()).await {
                return answer;
            }
            assert!(Instant::now() < deadline, "{method} {path} is not accepted");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// How many nodes are in each state.
    pub async fn states(&self) -> Vec<String> {
        let answer = self.insist("GET", "/v1/nodes?fields=provision_state", Value::Null).await;
        let nodes = answer["nodes"].as_array().unwrap().iter();
        nodes.map(|node| node["provision_state"].as_str().unwrap().to_owned()).collect()
    }

    /// Why nodes have failed, each with its history.
    async fn failures(&self) -> Vec<Value> {
        let answer = self.insist("GET", "/v1/nodes?fields=uuid,last_error", Value::Null).await;
        let mut failed = answer["nodes"].as_array().unwrap().clone();
        failed.retain(|node| !node["last_error"].is_null());
        for node in &mut failed {
            let path = format!("/v1/nodes/{}/history?detail=true", node["uuid"].as_str().unwrap());
            node["history"] = self.insist("GET", &path, Value::Null).await["history"].take();
        }
        failed
    }

    /// Wait until all nodes are in this state.
    pub async fn wait_for_all(&self, state: &str) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let states = self.states().await;
            if states.iter().all(|of| of == state) {
                return;
            }
            if states.iter().any(|of| of.contains("fail") || of == "error") {
                panic!("{:?}", self.failures().await);
            }
            assert!(Instant::now() < deadline, "{states:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
