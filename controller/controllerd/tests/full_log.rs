//! Where the log goes is full. That is no reason to do anything but not to log.

use reqwest::Client;
use serde_json::{Value, json};
use std::fs::File;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_log_that_cannot_be_written_stops_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = dir.path().join("controller.toml");
    let text = format!(
        "state_dir = {:?}\n[api]\nlisten = [\"127.0.0.1:{port}\"]\nauth_strategy = \"noauth\"\n",
        dir.path().join("state")
    );
    std::fs::write(&config, text).unwrap();
    // Each write to it ends with ENOSPC.
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_anneal-controller"))
        .arg("--config")
        .arg(&config)
        .stderr(full)
        .spawn()
        .unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().build().unwrap();
    let ask = async |method: &str, path: &str, body: Value| {
        let request = client.request(method.parse().unwrap(), format!("http://127.0.0.1:{port}{path}"));
        let request = request.header("x-openstack-ironic-api-version", "1.82");
        let answer =
            if body.is_null() { request.send().await } else { request.json(&body).send().await }.ok()?;
        let good = answer.status().is_success();
        let text = answer.text().await.ok()?;
        good.then(|| serde_json::from_str::<Value>(&text).unwrap_or_default())
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    let node = json!({"name": "n", "driver": "fake-hardware"});
    while ask("POST", "/v1/nodes", node.clone()).await.is_none() {
        assert!(process.try_wait().unwrap().is_none(), "it ended");
        assert!(Instant::now() < deadline, "it does not serve");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    ask("PUT", "/v1/nodes/n/states/provision", json!({"target": "manage"})).await.expect("accepted");
    let state =
        async || ask("GET", "/v1/nodes/n", Value::Null).await.map(|node| node["provision_state"].clone());
    while state().await != Some("manageable".into()) {
        assert!(Instant::now() < deadline, "n is {:?}", state().await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    process.kill().unwrap();
    process.wait().unwrap();
}
