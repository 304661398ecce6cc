//! The agent's whole life on loopback against a small controller that speaks real HTTP and TLS.

use crate::common;
use crate::controller;
use crate::life;
use crate::remote;

use agentd::config::Config;
use agentd::http::Client;
use agentd::run::RunError;
use agentd::tls::Trust;
use common::Probe;
use controller::{Controller, Script, TOKEN};
use hyper::Method;
use life::Life;
use pinned_tls::Pin;
use remote::Remote;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn other_token() -> String {
    TOKEN.chars().rev().collect()
}

fn config(controller: &Controller) -> Config {
    life::config(controller, &["--api-url=API", "--lookup-timeout=60", &format!("--mac={}", common::MAC)])
}

fn step(name: &str, id: &str) -> Value {
    let versions = json!({ "ProbeHardwareManager": "1.0", "generic_hardware_manager": "1.2" });
    json!({
        "name": "clean.execute_clean_step",
        "params": {
            "step": { "step": name, "interface": "deploy", "args": { "seconds": 1 } },
            "node": {}, "ports": [], "clean_version": versions,
        },
        "anneal_command_id": id,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_offers_the_extension_gets_everything() {
    let mut controller = Controller::start(Script { offer: true, ..Script::default() }).await;
    let probe = Arc::new(Probe::default());
    let life = Life::start(config(&controller), &probe);

    let first = controller.heartbeat().await;
    assert_eq!(first["agent_token"], TOKEN);
    assert!(first["anneal"]["boot_id"].as_str().is_some_and(|id| id.len() == 36));
    assert_eq!(controller.lookups()[0], format!("addresses={}", common::MAC.replace(':', "%3A")));
    let remote = Remote::of(&first);

    // The steps of the managers, then one of them, whose end is reported at once.
    let steps = remote
        .post(&json!({ "name": "clean.get_clean_steps", "params": { "node": {}, "ports": [] } }), true)
        .await;
    assert_eq!(steps.1["command_result"]["hardware_manager_version"]["generic_hardware_manager"], "1.2");
    let asked = Instant::now();
    assert_eq!(remote.post(&step("probe_quick", "one"), false).await.0, 200);
    let reported =
        controller.heartbeat_where(|beat| beat["anneal"]["ended"].to_string().contains("\"one\"")).await;
    assert!(asked.elapsed() < Duration::from_secs(3), "the end was not reported at once");
    assert_eq!(reported["anneal"]["running"], Value::Null);

    // The same id again: the same command, not run again.
    let (status, again) = remote.post(&step("probe_quick", "one"), true).await;
    assert_eq!((status, &again["command_result"]["clean_result"]), (200, &"quick done".into()));
    assert_eq!(probe.runs.load(Ordering::SeqCst), 1);
    let sync = json!({ "name": "standby.sync", "params": {}, "anneal_command_id": "one" });
    assert_eq!(remote.post(&sync, false).await.0, 409, "an id belongs to one command");

    // A running command: live progress in heartbeats, others are refused, a repeat is answered.
    assert_eq!(remote.post(&step("probe_progress", "two"), false).await.1["command_status"], "RUNNING");
    let live_beat = controller.heartbeat_where(|beat| !beat["anneal"]["running"]["progress"].is_null()).await;
    assert_eq!(live_beat["anneal"]["running"]["id"], "two");
    assert!(remote.get("two", false).await.1["progress"]["disks"][0]["bytes_done"].as_u64() > Some(0));
    let (status, busy) = remote.post(&step("probe_quick", "three"), false).await;
    assert_eq!(
        (status, &busy["faultstring"]),
        (409, &"Agent is busy: executing command execute_clean_step".into())
    );
    assert_eq!(remote.post(&step("probe_progress", "two"), false).await.1["command_status"], "RUNNING");

    // Cancelled: the command ends FAILED and keeps what was done.
    let cancel = json!({ "name": "anneal.cancel", "params": { "command_id": "two" } });
    assert_eq!(remote.post(&cancel, true).await.1["command_result"]["was_running"], true);
    let (_, ended) = remote.get("two", true).await;
    assert_eq!(
        (&ended["command_status"], &ended["command_error"]["type"]),
        (&"FAILED".into(), &"Cancelled".into())
    );
    assert!(ended["command_result"]["clean_result"]["bytes_done"].as_u64() > Some(0));
    assert_eq!(ended["progress"], Value::Null);
    assert_eq!(probe.runs.load(Ordering::SeqCst), 2);

    // A controller whose lease was taken over starts and stops nothing.
    let under = |epoch: Value, mut command: Value| {
        command["anneal_epoch"] = epoch;
        command
    };
    assert_eq!(remote.post(&under(json!(9), step("probe_quick", "new")), true).await.0, 200);
    let runs = probe.runs.load(Ordering::SeqCst);
    for command in [step("probe_quick", "old"), step("probe_quick", "new"), cancel.clone()] {
        let (status, refused) = remote.post(&under(json!(8), command), true).await;
        let text = "412 Precondition Failed: the command was sent under the lease with epoch 8, and the newest is that with epoch 9";
        assert_eq!((status, &refused["faultstring"]), (412, &text.into()));
    }
    assert_eq!(remote.post(&under(json!(-1), step("probe_quick", "old")), true).await.0, 400);
    assert_eq!(remote.get("old", false).await.0, 404, "it was not accepted");
    assert_eq!(probe.runs.load(Ordering::SeqCst), runs);

    // A panic fails its step; the agent goes on.
    let (_, crashed) = remote.post(&step("probe_crash", "four"), true).await;
    assert_eq!(
        crashed["command_error"]["details"],
        "Unexpected exception performing clean step probe_crash. panic: boom"
    );

    // Logs, then the end. Outside the ramdisk power_off only ends the process.
    let (_, logs) = remote.post(&json!({ "name": "log.collect_system_logs", "params": {} }), true).await;
    assert!(logs["command_result"]["system_logs"].as_str().is_some_and(|text| text.starts_with("H4sI")));
    let (status, _) = remote.post(&json!({ "name": "standby.power_off", "params": {} }), true).await;
    assert_eq!(status, 200);
    assert!(matches!(life.end().await, Ok(Some(ramdisk_init::Exit::PowerOff))));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ironic_gets_nothing_of_ours_and_is_not_hurried() {
    let mut controller = Controller::start(Script::default()).await;
    let life = Life::start(config(&controller), &Arc::default());
    let first = controller.heartbeat().await;
    let after_first = Instant::now();
    let mut keys: Vec<&str> = first.as_object().expect("object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["agent_token", "agent_verify_ca", "agent_version", "callback_url"]);
    let remote = Remote::of(&first);
    let mut plain = step("probe_quick", "");
    plain.as_object_mut().expect("object").remove("anneal_command_id");
    let (_, command) = remote.post(&plain, true).await;
    assert_eq!(command["command_status"], "SUCCEEDED");
    controller.heartbeat().await;
    // A little less than the gap: our clock starts when the answer has gone out, the agent's before.
    assert!(after_first.elapsed() > Duration::from_millis(4500), "Ironic's gap of 5 s was not kept");
    life.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_with_another_certificate_gets_nothing() {
    let controller = Controller::start(Script::default()).await;
    let mut config = config(&controller);
    config.trust = Some(Trust::Pins(vec![Pin::of_der(b"another")]));
    config.lookup_timeout = Duration::from_secs(3);
    let life = Life::start(config, &Arc::default());
    let result = tokio::time::timeout(Duration::from_secs(30), life.end()).await.expect("it goes on");
    assert!(matches!(result, Err(RunError::LookupTimeout(_))));
    assert!(controller.requests().is_empty(), "something was sent to an unknown controller");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_ipv6_the_agent_is_called_at_its_own_address_with_its_own_certificate() {
    let address = Ipv6Addr::LOCALHOST.into();
    let mut controller = Controller::start_at(address, Script { offer: true, ..Script::default() }).await;
    let mut config = config(&controller);
    config.listen = (Ipv4Addr::UNSPECIFIED, 0).into();
    let life = Life::start(config, &Arc::default());
    let first = controller.heartbeat().await;
    let url = first["callback_url"].as_str().expect("a URL");
    assert!(url.starts_with("https://[::1]:"), "{url}");
    assert_eq!(Remote::of(&first).get("x", false).await.0, 404);
    // Ironic looks for the address in the certificate, too.
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), first["agent_verify_ca"].as_str().expect("a certificate")).expect("written");
    let named = Client::new(Some(&Trust::CaFile(file.path().to_owned()))).expect("a client");
    let base = url.parse().expect("a URL");
    let reply = named.send(Method::GET, &base, "/v1/status", None, Vec::new()).await.expect("an answer");
    assert!(reply.local.is_ipv6() && reply.status < 500, "{}", reply.status);
    life.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_given_away_is_waited_for() {
    let script = Script { tokens: vec!["******".into(), TOKEN.into()], ..Script::default() };
    let mut controller = Controller::start(script).await;
    let life = Life::start(config(&controller), &Arc::default());
    assert_eq!(controller.heartbeat().await["agent_token"], TOKEN);
    assert_eq!(controller.lookups().len(), 2);
    life.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_heartbeat_leads_to_a_new_lookup() {
    let script = Script { tokens: vec![TOKEN.into(), other_token()], refuse: 1, ..Script::default() };
    let mut controller = Controller::start(script).await;
    let life = Life::start(config(&controller), &Arc::default());
    assert_eq!(controller.heartbeat().await["agent_token"], TOKEN);
    let second = controller.heartbeat().await;
    assert_eq!(second["agent_token"], other_token());
    let remote = Remote::of(&second);
    assert_eq!(remote.get("x", false).await.0, 404, "the new token must be the one that counts");
    assert_eq!(Remote::of(&json!({ "agent_token": TOKEN, "callback_url": second["callback_url"], "agent_verify_ca": second["agent_verify_ca"] })).get("x", false).await.0, 401);
    life.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_one_controller_dies_the_next_gets_the_heartbeats() {
    let script = || Script { offer: true, ..Script::default() };
    let (mut first, mut second) = (Controller::start(script()).await, Controller::start(script()).await);
    let life = Life::start(with_both(&first, &second), &Arc::default());
    let remote = Remote::of(&first.heartbeat().await);
    assert!(second.requests().is_empty());
    drop(first);
    let dead_since = Instant::now();
    // Its end is to be reported at once, and only the second controller is left.
    assert_eq!(remote.post(&step("probe_quick", "one"), true).await.0, 200);
    let reported = second.heartbeat().await;
    assert_eq!(reported["anneal"]["ended"], json!(["one"]));
    assert!(dead_since.elapsed() < Duration::from_secs(5), "the second was not asked at once");
    life.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_controller_that_was_found_dies_the_next_is_asked_for_the_node() {
    let taken = Script { tokens: vec!["******".into()], ..Script::default() };
    let first = Controller::start(taken).await;
    let mut second = Controller::start(Script::default()).await;
    let life = Life::start(with_both(&first, &second), &Arc::default());
    first.looked_up().await;
    drop(first);
    assert_eq!(second.heartbeat().await["agent_token"], TOKEN);
    life.stop().await;
}

/// Each has a certificate of its own.
fn with_both(first: &Controller, second: &Controller) -> Config {
    let mut config = config(first);
    config.api_urls = [first, second].map(|controller| controller.url.parse().expect("URL")).to_vec();
    config.trust = Some(Trust::Pins(vec![first.pin, second.pin]));
    config
}

#[test]
fn the_binary_explains_itself_and_refuses_nonsense() {
    let run = |arguments: &[&str]| {
        let done = std::process::Command::new(env!("CARGO_BIN_EXE_anneal-agent")).args(arguments).output();
        let done = done.expect("runs");
        (done.status.code(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
    };
    let (code, text) = run(&["--help"]);
    assert!(code == Some(0) && text.contains("--only-device"), "{text}");
    let (code, text) = run(&["--api-url", "https://192.0.2.1"]);
    assert!(code == Some(2) && text.contains("--pin"), "{text}");
}
