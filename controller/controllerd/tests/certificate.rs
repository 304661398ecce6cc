//! An erase from end to end: the real controller, a real agent, a loop device; and what an auditor makes of it.

use agentd::config::{Config, Environment};
use agentd::executor::Executor;
use agentd::logging::LogRing;
use agentd::login::NoLogin;
use agentd::signer::Signer;
use agentd::state::State;
use block::Filter;
use certificate::{Document, Finding, PowerOff, PublicKey, Signed, Verified, Wanted, verify};
use hwm_generic::GenericHardwareManager;
use reqwest::Client;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

const MAC: &str = "52:54:00:12:34:56";
const SIZE: usize = 4 << 20;

/// A loop device of 4 MiB that is not empty.
struct Disk(String, tempfile::NamedTempFile);

impl Disk {
    fn new() -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![0x5a; SIZE]).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(file.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self(String::from_utf8(output.stdout).unwrap().trim().to_owned(), file)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        assert!(Command::new("losetup").args(["--detach", &self.0]).status().unwrap().success());
    }
}

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
            "state_dir = {:?}\nhost = \"c1\"\n[api]\nlisten = [\"127.0.0.1:{port}\"]\nauth_strategy = \"noauth\"\n[agent]\nlookup_without_nonce = true\n[conductor]\nagent_poll_s = 1\n",
            dir.join("state")
        );
        std::fs::write(&config, text).unwrap();
        let program = env!("CARGO_BIN_EXE_anneal-controller");
        let process = Command::new(program).arg("--config").arg(&config).spawn().unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        let this = Self { process, endpoint: format!("http://127.0.0.1:{port}"), client };
        this.until("the controller serves", async || this.try_call("GET", "/v1", Value::Null).await).await;
        this
    }

    async fn try_call(&self, method: &str, path: &str, body: Value) -> Option<Value> {
        let request = self.client.request(method.parse().unwrap(), format!("{}{path}", self.endpoint));
        let request = request.header("x-openstack-ironic-api-version", "1.82");
        let request = if body.is_null() { request } else { request.json(&body) };
        let answer = request.send().await.ok()?;
        let good = answer.status().is_success();
        let body = answer.text().await.ok()?;
        good.then(|| serde_json::from_str(&body).unwrap_or_default())
    }

    /// A node that is locked for a moment is asked again.
    async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let what = format!("{method} {path} is answered");
        self.until(&what, async || self.try_call(method, path, body.clone()).await).await
    }

    async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(since.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn reaches(&self, node: &str, state: &str) -> Value {
        let path = format!("/v1/nodes/{node}");
        let there = async || {
            let seen = self.try_call("GET", &path, Value::Null).await?;
            let failed = seen["provision_state"] == "clean failed" && state != "clean failed";
            assert!(!failed, "{}", seen["last_error"]);
            (seen["provision_state"] == state).then_some(seen)
        };
        self.until(state, there).await
    }

    /// One manual cleaning; the node afterwards.
    async fn cleaned(&self, node: &str, steps: &[&str], disk: &Disk) -> Value {
        let step = |name: &&str| json!({"interface": "deploy", "step": name, "args": {}});
        let steps: Vec<_> = steps.iter().map(step).collect();
        let path = format!("/v1/nodes/{node}/states/provision");
        self.call("PUT", &path, json!({"target": "clean", "clean_steps": steps})).await;
        self.reaches(node, "clean wait").await;
        let _boot = boot(&self.endpoint, disk);
        self.reaches(node, "manageable").await
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// An agent that has this disk alone, until it is dropped.
fn boot(endpoint: &str, disk: &Disk) -> DropGuard {
    let arguments = [
        format!("--api-url={endpoint}"),
        "--listen=127.0.0.1:0".to_owned(),
        format!("--only-device={}", disk.0),
        format!("--mac={MAC}"),
    ];
    let environment = Environment { arguments: arguments.to_vec(), ..Environment::default() };
    let config: Config = agentd::config::parse(&environment).unwrap();
    let filter = Filter::Only(config.only_devices.clone());
    let (generic, found) = (GenericHardwareManager::new(filter.clone()), config.clone());
    let discover = move || agentd::inventory::collect(&found, generic.disks().unwrap());
    let managers: Vec<Arc<dyn hwm_sdk::HardwareManager>> =
        vec![Arc::new(GenericHardwareManager::new(filter))];
    let stop = CancellationToken::new();
    let guard = stop.clone().drop_guard();
    tokio::spawn(async move {
        // `cargo xtask test` builds all programs before any test.
        let agent = Path::new(env!("CARGO_BIN_EXE_anneal-controller")).with_file_name("anneal-agent");
        let signer =
            Some(Signer::start(&agent).expect("the program anneal-agent is built, and can be confined"));
        let state =
            State::new(signer, managers, Box::new(discover), LogRing::default(), Box::new(NoLogin), false);
        agentd::run::run(&config, Executor::new(state), stop).await.unwrap();
    });
    guard
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erase_is_certified_and_the_certificate_stands_by_itself() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (dir, disk) = (tempfile::tempdir().unwrap(), Disk::new());
    let controller = Controller::start(dir.path()).await;
    let get = async |path: String| controller.call("GET", &path, Value::Null).await;
    let made = json!({"driver": "fake-hardware", "deploy_interface": "direct", "name": "n1"});
    let node = controller.call("POST", "/v1/nodes", made).await["uuid"].as_str().unwrap().to_owned();
    controller.call("POST", "/v1/ports", json!({"node_uuid": node, "address": MAC})).await;
    controller.call("PUT", &format!("/v1/nodes/{node}/states/provision"), json!({"target": "manage"})).await;
    controller.reaches(&node, "manageable").await;

    let seen = controller.cleaned(&node, &["erase_devices"], &disk).await;
    assert!(std::fs::read(disk.1.path()).unwrap().iter().all(|byte| *byte == 0), "it is erased");
    let result = &seen["driver_internal_info"]["anneal"]["run"]["results"][0];
    let first = result["certificate"].as_str().expect("it has a certificate").to_owned();
    assert!(
        result["result"].get("anneal_evidence").is_none(),
        "what is signed is in the certificate: {result}"
    );

    // With the public key and the file, and nothing else.
    let key: PublicKey =
        get("/v1/anneal/certificate_key".into()).await["key"].as_str().unwrap().parse().unwrap();
    let file = async |id: &str| get(format!("/v1/anneal/certificates/{id}")).await.to_string();
    let text = file(&first).await;
    let wanted = Wanted { node: Some(&node), ..Wanted::default() };
    let Verified { id, certificate, evidence } = verify(&text, &key, &wanted).unwrap();
    assert_eq!((&id, certificate.finding, certificate.number), (&first, Finding::Erased, 1));
    assert_eq!((certificate.controller.name.as_str(), certificate.node.name.as_deref()), ("c1", Some("n1")));
    assert_eq!(certificate.run.kind, "manual_clean");
    assert_eq!(certificate.run.power_off, Some(PowerOff::Observed));
    let asked = certificate.run.requested_by.expect("a request started it");
    assert_eq!((asked.user, asked.address.as_deref()), (None, Some("127.0.0.1")));
    assert!(asked.request_id.is_some_and(|id| id.starts_with("req-")));
    assert_eq!(
        (evidence.step.step.as_str(), evidence.manager.name.as_str()),
        ("erase_devices", hwm_generic::NAME)
    );
    let [record] = &evidence.disks[..] else { panic!("{evidence:?}") };
    assert_eq!((record.device.as_str(), record.size), (disk.0.as_str(), SIZE as u64));
    assert_eq!(record.level.as_deref(), Some("clear"));
    assert!(record.standard.is_some() && record.verification.as_ref().unwrap().passed);
    let tampered = text.replace("manual_clean", "service");
    assert_eq!(verify(&tampered, &key, &wanted).unwrap_err().name(), "tampered");

    // The next run's follow it, from another boot of the agent, with another key of its own.
    let seen = controller.cleaned(&node, &["erase_devices_metadata", "erase_devices"], &disk).await;
    let results = &seen["driver_internal_info"]["anneal"]["run"]["results"];
    let [second, third] = [0, 1].map(|index| results[index]["certificate"].as_str().unwrap().to_owned());
    let (second, third) = (file(&second).await, file(&third).await);
    let next = verify(&second, &key, &Wanted { previous: Some(&text), ..wanted }).unwrap();
    assert_eq!(next.certificate.finding, Finding::MetadataErased);
    assert_ne!(next.certificate.evidence_key, certificate.evidence_key);
    let last = verify(&third, &key, &Wanted { previous: Some(&second), ..wanted }).unwrap();
    assert_eq!(last.certificate.number, 3);
    let gap = Wanted { previous: Some(&text), ..wanted };
    assert_eq!(verify(&third, &key, &gap).unwrap_err().name(), "broken-chain");

    // They outlive the node.
    controller.call("DELETE", &format!("/v1/nodes/{node}"), Value::Null).await;
    let list = get(format!("/v1/anneal/certificates?node={node}")).await;
    let list: Vec<_> = list["certificates"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    let third = Signed::read(Document::Certificate, &third).unwrap().digest();
    assert_eq!((list.len(), list[0], list[2]), (3, &json!(first), &json!(third)));
    assert_eq!(file(&first).await, text);
}
