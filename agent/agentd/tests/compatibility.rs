//! `docs/compatibility-agent.md` says what the code does; `ANNEAL_WRITE_DOCS=1` writes it anew. What it says of commands
//! and endpoints is asked of the API.

use crate::api;
use crate::common;

use agentd::api::ENDPOINTS;
use agentd::commands::{self, IpaCompatibility};
use agentd::compatibility;
use api::{TOKEN, ask, router};
use common::Probe;
use serde_json::{Map, Value, json};
use std::sync::Arc;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compatibility-agent.md");

#[test]
fn the_page_is_current() {
    let page = compatibility::page();
    if std::env::var_os("ANNEAL_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &page).expect("written");
    }
    let checked_in = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        checked_in == page,
        "docs/compatibility-agent.md is stale: run this test with ANNEAL_WRITE_DOCS=1"
    );
}

#[tokio::test]
async fn every_command_ends_as_the_page_says() {
    for command in commands::all() {
        // One agent each: some end it.
        let router = router(common::agent(&Arc::default()));
        let params: Map<String, Value> =
            command.required.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        let uri = format!("/v1/commands/?wait=true&agent_token={TOKEN}");
        let body = json!({"name": command.name, "params": params}).to_string();
        let (status, answer, _) = ask(&router, "POST", &uri, body).await;
        let details = answer["command_error"]["details"].as_str().unwrap_or_default();
        match command.compatibility {
            IpaCompatibility::Fails(why) => {
                assert_eq!((status, &answer["command_status"]), (200, &"FAILED".into()), "{}", command.name);
                assert_eq!(details, why, "{}", command.name);
                assert!(why.contains("nothing was"), "{}: {why}", command.name);
            }
            IpaCompatibility::Invalid(why) => {
                let text = format!("Invalid command: {why}");
                assert_eq!((status, &answer["faultstring"]), (400, &text.into()), "{}", command.name);
            }
            IpaCompatibility::Same | IpaCompatibility::Differs(_) | IpaCompatibility::Ours(_) => {
                assert_eq!((status, &answer["command_name"]), (200, &command.short_name().into()));
            }
        }
    }
}

#[tokio::test]
async fn the_endpoints_are_those_of_the_page_and_no_others() {
    let router = router(common::agent(&Arc::default()));
    let methods = ["GET", "POST", "PUT", "PATCH", "DELETE"];
    for (_, path, token, _) in ENDPOINTS {
        let here = |(_, other, ..): &&(&str, &str, bool, &str)| other == path;
        let served: Vec<&str> = ENDPOINTS.iter().filter(here).map(|(method, ..)| *method).collect();
        let uri = path.replace("{id}", "nosuch");
        for method in methods {
            let (status, ..) = ask(&router, method, &uri, "null").await;
            let expected = match served.contains(&method) {
                false => 405,
                true if *token => 401,
                true => 200,
            };
            assert_eq!(status, expected, "{method} {path}");
        }
    }
}

/// The machine stays on, and nothing of the agent is left to talk to.
#[tokio::test]
async fn a_lockdown_halts_the_machine() {
    let agent = common::agent(&Arc::new(Probe::default()));
    let uri = format!("/v1/commands/?agent_token={TOKEN}");
    let lockdown = json!({"name": "system.lockdown", "params": {}}).to_string();
    let (_, reported, _) = ask(&router(agent.clone()), "POST", &uri, lockdown).await;
    assert_eq!(reported["command_status"], "SUCCEEDED", "{reported}");
    assert_eq!(agent.state().exited().await, ramdisk_init::Exit::Halt);
}

/// What a flow does, and what it refuses before anything has run.
#[tokio::test]
async fn a_flow_runs_its_commands_in_order_until_one_fails() {
    let probe = Arc::new(Probe::default());
    let router = router(common::agent(&probe));
    let uri = format!("/v1/commands/?wait=true&agent_token={TOKEN}");
    let flow = async |flow: Value| {
        let body = json!({"name": "flow.start_flow", "params": {"flow": flow}}).to_string();
        ask(&router, "POST", &uri, body).await.1
    };
    let step = |step: &str| json!({"clean.execute_clean_step": {"step": {"step": step, "interface": "deploy"}, "node": {}, "ports": []}});
    let runs = || probe.runs.load(std::sync::atomic::Ordering::SeqCst);
    for wrong in [
        json!({}),
        json!([[]]),
        json!([{"clean.execute_clean_step": []}]),
        json!([step("probe_quick"), {"clean.nosuch": {}}]),
        json!([step("probe_quick"), {"poll.set_node_info": {}}]),
        json!([step("probe_quick"), {"standby.sync": {"wrong": 1}}]),
        json!([{"flow.start_flow": {"flow": []}}]),
    ] {
        let answer = flow(wrong.clone()).await;
        assert_eq!(answer["command_error"]["type"], "TypeError", "{wrong}: {answer}");
    }
    assert_eq!(runs(), 0, "something of a refused flow ran");
    let good = flow(json!([{"standby.sync": {}}, step("probe_quick")])).await;
    assert_eq!(good["command_status"], "SUCCEEDED", "{good}");
    assert_eq!(good["command_result"]["flow"][1]["command_result"]["clean_result"], "quick done");
    let bad = flow(json!([step("probe_fail"), step("probe_quick")])).await;
    assert_eq!(bad["command_error"]["details"], "clean.execute_clean_step was failed: probe says no");
    assert_eq!(runs(), 2, "a flow went on after a failure");
}
