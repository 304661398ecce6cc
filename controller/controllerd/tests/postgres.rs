//! The real controller on PostgreSQL, which is killed and restarted while nodes are cleaned.

mod cluster;

use cluster::{Api, Controller, LIMIT};
use postgres_server::{Durability, Server};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::Command;
use std::time::Instant;

const NODES: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_become_available_although_postgresql_dies_in_between() {
    let mut server = Server::start(Durability::Full);
    let name = server.create();
    let dir = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (config, log) = (dir.path().join("controller.toml"), dir.path().join("log"));
    let password = dir.path().join("password");
    std::fs::write(&password, "hunter2\n").unwrap();
    let text = format!(
        "state_dir = {:?}\n[database]\nurl = {:?}\npassword_file = {password:?}\n[api]\nlisten = [\"127.0.0.1:{port}\"]\nauth_strategy = \"noauth\"\n",
        dir.path().join("state"),
        server.url(&name),
    );
    std::fs::write(&config, text).unwrap();
    let controller = Controller::start(&config, &log);
    let api = Api::at(port);

    for index in 0..NODES {
        let node = json!({"name": format!("n{index}"), "driver": "fake-hardware"});
        api.insist("POST", "/v1/nodes", node).await;
        let path = format!("/v1/nodes/n{index}/states/provision");
        api.insist("PUT", &path, json!({"target": "manage"})).await;
    }
    api.wait_for_all("manageable").await;
    for index in 0..NODES {
        if index % 4 == 1 {
            // In the middle of passes over the nodes before.
            server = tokio::task::spawn_blocking(move || {
                server.kill();
                server.run();
                server
            })
            .await
            .unwrap();
        }
        // A request that had no answer may have been done all the same: then the node is on its way already.
        let path = format!("/v1/nodes/n{index}");
        let deadline = Instant::now() + LIMIT;
        while api.insist("GET", &path, Value::Null).await["provision_state"] == "manageable" {
            api.ask("PUT", &format!("{path}/states/provision"), json!({"target": "provide"})).await;
            assert!(Instant::now() < deadline, "n{index} is not cleaned");
        }
    }
    api.wait_for_all("available").await;

    // Another process of it goes on with what is stored.
    drop(controller);
    server.stop();
    server.run();
    let _controller = Controller::start(&config, &log);
    api.wait_for_all("available").await;
    assert_eq!(api.states().await.len(), NODES);
    assert_eq!(
        server.sql(&name, "SELECT count(*) FROM node WHERE provision_state = 'available'"),
        NODES.to_string()
    );
    assert!(!dir.path().join("state/anneal.sqlite").exists());
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(!log.contains("hunter2"), "{log}");
}

/// What is the file's alone says so.
#[test]
fn commands_for_the_file_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("controller.toml");
    let text = format!(
        "state_dir = {:?}\n[database]\nurl = \"postgres://u:hunter2@localhost:1/a\"\n",
        dir.path().join("state")
    );
    std::fs::write(&config, text).unwrap();
    let run = |arguments: &[&str]| {
        let ran = Command::new(env!("CARGO_BIN_EXE_anneal-controller"))
            .arg("--config")
            .arg(&config)
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8(ran.stderr).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        (ran.status.success(), text)
    };
    for (arguments, part) in
        [(&["backup", "/tmp/x"][..], "pg_dump"), (&["restore", "/tmp/x"][..], "pg_restore")]
    {
        let (good, text) = run(arguments);
        assert!(!good && text.contains(part), "{text}");
    }
    // No server answers there.
    for arguments in [&["forget-secrets"][..], &["change-certificate-key"][..], &[][..]] {
        let (good, text) = run(arguments);
        assert!(!good && text.contains("database"), "{text}");
    }
    let (good, _) = run(&["--check-config"]);
    assert!(good);
}
