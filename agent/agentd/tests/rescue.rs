//! `rescue.finalize_rescue` over the API: it succeeds only when a user can log in, and the password stays secret.

use crate::api;
use crate::common;

use agentd::logging::LogRing;
use agentd::login::{LoginProgram, LoginService, NoLogin};
use api::TOKEN;
use axum::Router;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const HASH: &str =
    "$6$saltstring$adDbXsJjcDlq2662QPgd.tkSOVmnG9Tt3oXl4HR60SusC3AGjirnDenVZp3DGwLwqy6iYKCzannhaX9DR72nN1";
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJv7 me@desk";
const PLAIN: &str = "correct horse battery staple";

fn router(login: Box<dyn LoginService>, logs: &LogRing) -> Router {
    api::router(common::agent_with_login(&Arc::default(), login, logs.clone()))
}

async fn ask(router: &Router, method: &str, body: Value) -> Value {
    let uri = format!("/v1/commands/?wait=true&agent_token={TOKEN}");
    api::ask(router, method, &uri, body.to_string()).await.1
}

async fn rescue(router: &Router, params: Value, id: &str) -> Value {
    let command = json!({"name": "rescue.finalize_rescue", "params": params, "anneal_command_id": id});
    ask(router, "POST", command).await
}

fn error(command: &Value) -> &str {
    assert_eq!(command["command_status"], "FAILED", "{command}");
    command["command_error"]["details"].as_str().expect("details")
}

/// A program that notes its process id next to the password's file, and stays.
fn program(directory: &Path) -> LoginProgram {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/login.sh");
    LoginProgram::new(path, directory.join("password"))
}

#[tokio::test]
async fn a_node_is_rescued_only_when_a_login_is_possible_and_the_password_is_never_shown() {
    let (directory, logs) = (tempfile::tempdir().expect("tempdir"), LogRing::default());
    logs.install(true);
    let keys = json!({"authorized_keys": [KEY]});
    let params = json!({"rescue_password": HASH, "hashed": true, "anneal": keys});

    let without = router(Box::new(NoLogin), &logs);
    assert!(error(&rescue(&without, params.clone(), "a").await).contains("no login is possible"));
    let with = router(Box::new(program(directory.path())), &logs);
    let refused = rescue(&with, json!({"rescue_password": PLAIN, "hashed": false}), "plain").await;
    assert!(error(&refused).contains("hashed=true"), "{refused}");
    let refused = rescue(&with, json!({ "rescue_password": HASH }), "unsaid").await;
    assert!(error(&refused).contains("hashed=true"), "{refused}");
    let refused = rescue(&with, json!({"rescue_password": PLAIN, "hashed": true}), "no-hash").await;
    assert!(error(&refused).contains("known scheme"), "{refused}");
    let refused = rescue(&with, json!({"rescue_password": [HASH], "hashed": true}), "list").await;
    assert!(error(&refused).contains("known scheme"), "{refused}");
    let mut foreign = params.clone();
    foreign["anneal"] = json!({"authorized_keys": [format!("command=\"x\" {KEY}")]});
    let refused = rescue(&with, foreign, "options").await;
    assert!(error(&refused).contains("authorized_keys[0] is no public key"), "{refused}");
    assert!(!directory.path().join("password").exists());

    // Twice by one id: the controller that did not hear the answer.
    for _ in 0..2 {
        let rescued = rescue(&with, params.clone(), "b").await;
        assert_eq!(
            (&rescued["command_status"], &rescued["command_result"]),
            (&"SUCCEEDED".into(), &json!({"anneal": {"host_key": "test SHA256:of-a-test"}}))
        );
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    let started = loop {
        let started = std::fs::read_to_string(directory.path().join("password.log")).unwrap_or_default();
        if started.ends_with('\n') {
            break started;
        }
        assert!(Instant::now() < deadline, "it was not started: {started:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let [line] = started.lines().collect::<Vec<_>>()[..] else { panic!("started once, not {started:?}") };
    let pid = line.split(' ').next().unwrap_or_default();
    let pid = nix::unistd::Pid::from_raw(pid.parse().expect("pid"));
    nix::sys::signal::kill(pid, None).expect("it stays running");
    let written = |name| std::fs::read_to_string(directory.path().join(name)).expect("file");
    assert_eq!((written("password").as_str(), written("password.keys")), (HASH, format!("{KEY}\n")));

    for router in [&with, &without] {
        let listed = ask(router, "GET", Value::Null).await.to_string();
        assert!(
            listed.contains("finalize_rescue") && !listed.contains("saltstring") && !listed.contains(PLAIN),
            "{listed}"
        );
    }
    let log = String::from_utf8(logs.bytes()).expect("utf-8");
    assert!(log.contains("finalize_rescue") && log.contains("login is possible"), "{log}");
    assert!(!log.contains("saltstring") && !log.contains(PLAIN), "{log}");
}
