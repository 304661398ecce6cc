//! `log_format = "json"`: a program can join what a node did to the request that caused it.

use reqwest::Client;
use serde_json::{Value, json};
use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The lines of the log, each of which is one JSON object. The last may not be whole yet.
fn lines(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

#[tokio::test]
async fn every_line_is_json_and_an_event_names_the_request_that_caused_it() {
    let dir = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (config, log) = (dir.path().join("controller.toml"), dir.path().join("log"));
    let state = dir.path().join("state");
    let text = format!(
        "state_dir = {state:?}\nlog_format = \"json\"\n[api]\nlisten = [\"127.0.0.1:{port}\"]\nauth_strategy = \"noauth\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_anneal-controller"))
        .arg("--config")
        .arg(&config)
        .stderr(File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().build().unwrap();
    let ask = async |method: &str, path: &str, body: Value| {
        let request = client.request(method.parse().unwrap(), format!("http://127.0.0.1:{port}{path}"));
        let request = request.header("x-openstack-ironic-api-version", "1.82").json(&body);
        let answer = request.send().await.ok()?.error_for_status().ok()?;
        Some(answer.headers()["openstack-request-id"].to_str().unwrap().to_owned())
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    let logged = async |texts: &[&str]| {
        loop {
            let lines = lines(&log);
            let find = |text: &&str| {
                let message =
                    |line: &&Value| line["fields"]["message"].as_str().unwrap_or_default().contains(text);
                lines.iter().find(message).cloned()
            };
            if let Some(found) = texts.iter().map(find).collect::<Option<Vec<Value>>>() {
                return found;
            }
            assert!(Instant::now() < deadline, "{texts:?} in {lines:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    logged(&["bmc.networks is not set: the controller connects to BMCs at every address"]).await;
    let node = json!({"name": "n", "driver": "fake-hardware"});
    let enrolled = loop {
        if let Some(id) = ask("POST", "/v1/nodes", node.clone()).await {
            break id;
        }
        assert!(process.try_wait().unwrap().is_none(), "it ended");
        assert!(Instant::now() < deadline, "it does not serve");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let managed = ask("PUT", "/v1/nodes/n/states/provision", json!({"target": "manage"})).await.unwrap();
    logged(&["verifying -> manageable"]).await;
    let provide = json!({"target": "provide"});
    let provided = ask("PUT", "/v1/nodes/n/states/provision", provide).await.unwrap();

    let texts = ["enrolled with", "enroll -> verifying", "manageable -> cleaning", "cleaning -> "];
    let found = logged(&texts).await;
    let uuid = &found[0]["fields"]["node_uuid"];
    assert!(uuid.is_string());
    for (line, id) in found.iter().zip([&enrolled, &managed, &provided, &provided]) {
        assert_eq!(line["fields"]["request_id"], **id, "{line}");
        assert_eq!(line["fields"]["node_uuid"], *uuid, "{line}");
        assert_eq!(line["fields"]["kind"], "transition", "{line}");
    }
    assert_eq!(found[2]["span"]["request_id"], *provided);
    let audited = logged(&["POST /v1/nodes"]).await.remove(0);
    assert_eq!((&audited["target"], &audited["fields"]["address"]), (&json!("audit"), &json!("127.0.0.1")));
    assert_eq!(found[2]["span"]["path"], "/v1/nodes/{ident}/states/provision");
    assert_eq!(found[3]["span"]["name"], "pass");
    process.kill().unwrap();
    process.wait().unwrap();
}
