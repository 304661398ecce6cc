//! Requests right after a change of power was answered 202, fifty times each, at the real program with BMCs that take their time.
//! The real Ironic gets each right: its conductor holds the node's lock from the 202 on.

use reqwest::Client;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const ROUNDS: usize = 50;
/// What each call of a BMC takes.
const LATENCY_MS: u64 = 20;

/// The real program, with its own database.
struct Controller {
    process: Child,
    endpoint: String,
    client: Client,
}

impl Controller {
    async fn start(dir: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = dir.join("controller.toml");
        let text = format!(
            "state_dir = {:?}\nhost = \"c1\"\n[api]\nlisten = [\"127.0.0.1:{port}\"]\nauth_strategy = \"noauth\"\n[conductor]\nautomated_clean_enable = false\n",
            dir.join("state")
        );
        std::fs::write(&config, text).unwrap();
        // The API is plain HTTP on loopback; the client wants a provider all the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build().unwrap();
        let program = env!("CARGO_BIN_EXE_anneal-controller");
        let process = Command::new(program).arg("--config").arg(&config).spawn().unwrap();
        let this = Self { process, endpoint: format!("http://127.0.0.1:{port}"), client };
        let begun = Instant::now();
        while this.client.get(format!("{}/v1", this.endpoint)).send().await.is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the controller does not serve");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        this
    }

    /// One request, asked once: its status and body.
    async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let request = self.client.request(method.parse().unwrap(), format!("{}{path}", self.endpoint));
        let request = request.header("x-openstack-ironic-api-version", "1.82");
        let request = if body.is_null() { request } else { request.json(&body) };
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// The same, which must be answered with this status.
    async fn call(&self, status: u16, method: &str, path: &str, body: Value) -> Value {
        let (seen, body) = self.ask(method, path, body).await;
        assert_eq!(seen, status, "{method} {path}: {body}");
        body
    }

    /// The node once it is as `there` wants it.
    async fn until(&self, name: &str, there: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let node = self.call(200, "GET", &format!("/v1/nodes/{name}"), Value::Null).await;
            if there(&node) {
                return node;
            }
            let (state, error) = (&node["provision_state"], &node["last_error"]);
            assert!(begun.elapsed() < Duration::from_secs(60), "{name} stays {state}: {error}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// A node in `available`, off.
    async fn enrol(&self, name: &str, latency_ms: u64) -> Value {
        let info = json!({"fake_power_latency_ms": latency_ms});
        let node =
            json!({"name": name, "driver": "fake-hardware", "resource_class": name, "driver_info": info});
        self.call(201, "POST", "/v1/nodes", node).await;
        for (verb, state) in [("manage", "manageable"), ("provide", "available")] {
            self.verb(name, verb, state).await;
        }
        self.until(name, |node| node["power_state"] == "power off").await
    }

    async fn verb(&self, name: &str, verb: &str, state: &str) {
        self.call(202, "PUT", &format!("/v1/nodes/{name}/states/provision"), json!({"target": verb})).await;
        self.until(name, |node| node["provision_state"] == state).await;
    }

    async fn power(&self, name: &str, target: &str) {
        self.call(202, "PUT", &format!("/v1/nodes/{name}/states/power"), json!({"target": target})).await;
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// 4 of 10 ended in `error`: the node was locked, or its row was written, in the very moment.
async fn allocations(controller: &Controller) {
    controller.enrol("allocated", LATENCY_MS).await;
    for round in 0..ROUNDS {
        let target = if round % 2 == 0 { "power on" } else { "power off" };
        controller.power("allocated", target).await;
        let wish = json!({"name": "wish", "resource_class": "allocated"});
        controller.call(201, "POST", "/v1/allocations", wish).await;
        let made = controller.call(200, "GET", "/v1/allocations/wish", Value::Null).await;
        assert_eq!(made["state"], "active", "round {round}: {made}");
        controller.call(204, "DELETE", "/v1/allocations/wish", Value::Null).await;
        controller.until("allocated", |node| node["power_state"] == target).await;
    }
}

/// Changes were refused after a request to power off, and accepted after one to power on.
async fn changes_of_volumes(controller: &Controller) {
    let node = controller.enrol("changed", LATENCY_MS).await;
    let volume =
        json!({"node_uuid": node["uuid"], "boot_index": 0, "volume_id": "v", "volume_type": "iscsi"});
    let volume = controller.call(201, "POST", "/v1/volume/targets", volume).await;
    let path = format!("/v1/volume/targets/{}", volume["uuid"].as_str().unwrap());
    for round in 0..ROUNDS {
        let change = json!([{"op": "replace", "path": "/volume_id", "value": format!("v{round}")}]);
        controller.power("changed", "power on").await;
        controller.call(400, "PATCH", &path, change.clone()).await;
        controller.power("changed", "power off").await;
        controller.call(200, "PATCH", &path, change).await;
    }
}

/// 7 of 10 volumes of an active node that was to be powered on could be deleted.
async fn deletions_of_volumes(controller: &Controller) {
    let node = controller.enrol("active", LATENCY_MS).await;
    controller.verb("active", "active", "active").await;
    controller.power("active", "power off").await;
    for _ in 0..ROUNDS {
        let volume =
            json!({"node_uuid": node["uuid"], "boot_index": 0, "volume_id": "v", "volume_type": "iscsi"});
        let volume = controller.call(201, "POST", "/v1/volume/targets", volume).await;
        let path = format!("/v1/volume/targets/{}", volume["uuid"].as_str().unwrap());
        controller.power("active", "power on").await;
        controller.call(400, "DELETE", &path, Value::Null).await;
        controller.power("active", "power off").await;
        controller.call(204, "DELETE", &path, Value::Null).await;
    }
}

/// The new instance was switched off by a request that came before its deployment.
async fn verbs(controller: &Controller) {
    controller.enrol("deployed", LATENCY_MS).await;
    for _ in 0..ROUNDS {
        controller.power("deployed", "power on").await;
        controller.until("deployed", |node| node["reservation"].is_null()).await;
        controller.power("deployed", "power off").await;
        // A step of the deployment switches the node on; the controller sees that when it looks at the node next. A power-off that
        // was carried out late would stay.
        let on = json!({"interface": "power", "step": "power_on", "args": {}, "priority": 50});
        let deploy = json!({"target": "active", "deploy_steps": [on]});
        controller.call(202, "PUT", "/v1/nodes/deployed/states/provision", deploy).await;
        controller.until("deployed", |node| node["provision_state"] == "active").await;
        let runs = |node: &Value| node["power_state"] == "power on" && node["target_power_state"].is_null();
        controller.until("deployed", |node| node["reservation"].is_null() && runs(node)).await;
        controller.verb("deployed", "deleted", "available").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_202_is_in_force_when_it_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let controller = Controller::start(dir.path()).await;
    tokio::join!(
        allocations(&controller),
        changes_of_volumes(&controller),
        deletions_of_volumes(&controller),
        verbs(&controller),
    );
}

/// A BMC that takes longer than a request waits: 409, with the words of Ironic that clients know.
#[tokio::test]
async fn what_takes_longer_than_three_seconds_is_409() {
    let dir = tempfile::tempdir().unwrap();
    let controller = Controller::start(dir.path()).await;
    let node = controller.enrol("slow", 0).await;
    let slow = json!([{"op": "add", "path": "/driver_info/fake_power_latency_ms", "value": 20_000}]);
    controller.call(200, "PATCH", "/v1/nodes/slow", slow).await;
    controller.power("slow", "power on").await;
    let begun = Instant::now();
    let path = "/v1/nodes/slow/states/provision";
    let refused = controller.call(409, "PUT", path, json!({"target": "active"})).await;
    assert!(begun.elapsed() >= Duration::from_secs(3), "{:?}", begun.elapsed());
    let says = format!("Node {} is locked by host c1, please retry", node["uuid"].as_str().unwrap());
    assert!(refused.to_string().contains(&says), "{refused}");
}
