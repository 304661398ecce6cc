//! A backup is put in the place of the database, of a file and of PostgreSQL. No controller drives nodes by it before
//! `anneal-controller restored` has marked those that are not as it says.

use crate::cluster;

use cluster::{Api, Controller};
use postgres_server::{Durability, Server};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// An installation.
struct Site {
    dir: tempfile::TempDir,
    config: PathBuf,
    api: Api,
}

impl Site {
    /// With a database that the settings name.
    fn new(database: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = dir.path().join("controller.toml");
        let text = format!(
            "state_dir = {:?}\n[api]\nlisten = [\"127.0.0.1:{port}\"]\nauth_strategy = \"noauth\"\n{database}",
            dir.path().join("state")
        );
        std::fs::write(&config, text).unwrap();
        Self { dir, config, api: Api::at(port) }
    }

    fn start(&self) -> Controller {
        Controller::start(&self.config, &self.dir.path().join("log"))
    }

    /// Whether a command succeeds, and what it says.
    fn run(&self, arguments: &[&str]) -> (bool, String) {
        let ran = Command::new(env!("CARGO_BIN_EXE_anneal-controller"))
            .arg("--config")
            .arg(&self.config)
            .args(arguments)
            .output()
            .unwrap();
        (ran.status.success(), String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap())
    }

    async fn provision(&self, name: &str, target: &str, state: &str) {
        let path = format!("/v1/nodes/{name}");
        self.api.insist("PUT", &format!("{path}/states/provision"), json!({"target": target})).await;
        self.wait(name, "provision_state", state).await;
    }

    async fn wait(&self, name: &str, field: &str, wanted: &str) {
        let deadline = Instant::now() + cluster::LIMIT;
        loop {
            let node = self.api.insist("GET", &format!("/v1/nodes/{name}"), Value::Null).await;
            if node[field] == wanted {
                return;
            }
            assert!(Instant::now() < deadline, "{name}: {field} is {}, not {wanted}", node[field]);
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    /// Nodes as they are when the backup is made: at rest, with power, and in a cleaning that waits.
    async fn furnish(&self) {
        for name in ["rest", "power", "flight", "late"] {
            self.api.insist("POST", "/v1/nodes", json!({"name": name, "driver": "fake-hardware"})).await;
            self.provision(name, "manage", "manageable").await;
            self.wait(name, "power_state", "power off").await;
        }
        self.api.insist("PUT", "/v1/nodes/power/states/power", json!({"target": "power on"})).await;
        self.wait("power", "power_state", "power on").await;
        let hold = json!({"target": "clean", "clean_steps": [{"interface": "deploy", "step": "hold"}]});
        self.api.insist("PUT", "/v1/nodes/flight/states/provision", hold).await;
        self.wait("flight", "provision_state", "clean hold").await;
    }

    /// What happens after it.
    async fn go_on(&self) {
        self.provision("flight", "abort", "clean failed").await;
        for name in ["rest", "late"] {
            self.provision(name, "provide", "available").await;
        }
    }

    /// The backup is in place: who fakes the machines has lost their power, so one of them is not as it says.
    async fn comes_back(&self) {
        let (good, text) = self.run(&[]);
        assert!(!good && text.contains("Run anneal-controller restored first"), "{text}");
        let (good, text) = self.run(&["restored"]);
        assert!(good, "{text}");
        assert!(
            text.contains("power: the database was restored from a backup: its power was \"power on\""),
            "{text}"
        );
        assert!(text.contains(
            "flight: the database was restored from a backup: the node was in state \"clean hold\""
        ));
        assert!(text.contains("2 of 4 nodes are in maintenance"), "{text}");
        let controller = self.start();
        for (name, state, maintenance) in [
            ("rest", "manageable", false),
            ("late", "manageable", false),
            ("power", "manageable", true),
            ("flight", "clean failed", true),
        ] {
            let node = self.api.insist("GET", &format!("/v1/nodes/{name}"), Value::Null).await;
            assert_eq!(
                (&node["provision_state"], &node["maintenance"]),
                (&json!(state), &json!(maintenance)),
                "{name}"
            );
        }
        self.provision("rest", "provide", "available").await;
        // The operator's word.
        self.api.insist("DELETE", "/v1/nodes/flight/maintenance", Value::Null).await;
        self.provision("flight", "manage", "manageable").await;
        drop(controller);
        // Once is enough.
        let controller = self.start();
        self.wait("flight", "provision_state", "manageable").await;
        drop(controller);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_restored_is_compared_before_nodes_are_driven() {
    let site = Site::new("");
    let backup = site.dir.path().join("backup.sqlite");
    let controller = site.start();
    site.furnish().await;
    let (good, text) = site.run(&["backup", backup.to_str().unwrap()]);
    assert!(good, "{text}");
    site.go_on().await;
    drop(controller);
    let (good, text) = site.run(&["restore", backup.to_str().unwrap(), "--replace"]);
    assert!(good && text.contains("anneal-controller restored"), "{text}");
    site.comes_back().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_postgresql_that_was_restored_is_compared_before_nodes_are_driven() {
    let server = Server::start(Durability::None);
    let name = server.create();
    let site = Site::new(&format!("[database]\nurl = {:?}\n", server.url(&name)));
    let controller = site.start();
    site.furnish().await;
    let file = site.dir.path().join("anneal.dump");
    tool(&server, "pg_dump", &["--format=custom", "--file", file.to_str().unwrap(), &name]);
    site.go_on().await;
    let (good, text) = site.run(&["restored"]);
    assert!(!good && text.contains("a controller uses the database"), "{text}");
    let mut controller = controller;
    controller.signal(nix::sys::signal::Signal::SIGTERM);
    controller.ended();
    // The note is brought up to date at each start.
    let controller = site.start();
    site.wait("rest", "provision_state", "available").await;
    drop(controller);
    server.remove(&name);
    server.sql("postgres", &format!("CREATE DATABASE {name}"));
    tool(&server, "pg_restore", &["--exit-on-error", "--dbname", &name, file.to_str().unwrap()]);
    site.comes_back().await;
}

/// One of PostgreSQL's programs, at the server.
fn tool(server: &Server, program: &str, arguments: &[&str]) {
    let ran = Command::new(Path::new(postgres_server::PROGRAMS).join(program))
        .args(["--username=postgres", "--port=5432"])
        .arg(format!("--host={}", server.dir().display()))
        .args(arguments)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{program}: {}", String::from_utf8_lossy(&ran.stderr));
}
