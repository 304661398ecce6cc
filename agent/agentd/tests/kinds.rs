//! Clean, deploy and service steps over the API: the same rules, each with its own words.

use crate::api;
use crate::common;

use api::{TOKEN, ask, router};
use axum::Router;
use common::Probe;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const KINDS: [(&str, &str, &str); 3] = [
    ("clean", "CleaningError", "Clean step failed"),
    ("deploy", "DeploymentError", "Deploy step failed"),
    ("service", "ServicingError", "Service step failed"),
];

struct Api {
    router: Router,
    probe: Arc<Probe>,
}

impl Api {
    fn new() -> Self {
        let probe = Arc::new(Probe::default());
        Self { router: router(common::agent(&probe)), probe }
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        let uri = format!("{path}&agent_token={TOKEN}");
        let (status, answer, _) = ask(&self.router, method, &uri, body.to_string()).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    async fn post(&self, name: &str, params: Value, id: &str, wait: bool) -> Value {
        let body = json!({"name": name, "params": params, "anneal_command_id": id});
        self.ask("POST", &format!("/v1/commands/?wait={wait}"), body).await
    }

    fn runs(&self) -> usize {
        self.probe.runs.load(Ordering::SeqCst)
    }
}

fn versions() -> Value {
    json!({ "ProbeHardwareManager": "1.0", "generic_hardware_manager": "1.2" })
}

fn params(kind: &str, step: &Value, version: Value) -> Value {
    let mut params = json!({"step": step, "node": {"uuid": "n"}, "ports": []});
    params[format!("{kind}_version")] = version;
    params
}

fn step(name: &str, args: Value) -> Value {
    json!({"step": name, "interface": "deploy", "priority": 0, "args": args})
}

#[tokio::test]
async fn each_kind_lists_its_steps_under_its_own_key() {
    let api = Api::new();
    for (kind, ..) in KINDS {
        let asked = json!({"node": {}, "ports": []});
        let reported =
            api.post(&format!("{kind}.get_{kind}_steps"), asked, &format!("get-{kind}"), true).await;
        let result = &reported["command_result"];
        assert_eq!(result["hardware_manager_version"], versions());
        let steps = &result[format!("{kind}_steps")]["ProbeHardwareManager"];
        assert_eq!(steps[0]["step"], "probe_quick", "{reported}");
        assert_eq!(result.as_object().map(|keys| keys.len()), Some(2), "{reported}");
    }
}

#[tokio::test]
async fn each_kind_runs_a_step_once_and_echoes_it() {
    let api = Api::new();
    for (kind, error, message) in KINDS {
        let name = format!("{kind}.execute_{kind}_step");
        let before = api.runs();
        let quick = step("probe_quick", json!({}));
        for _ in 0..2 {
            let done = api.post(&name, params(kind, &quick, versions()), &format!("{kind}-1"), true).await;
            assert_eq!(
                (&done["id"], &done["command_status"]),
                (&format!("{kind}-1").into(), &"SUCCEEDED".into())
            );
            let expected = json!({ format!("{kind}_result"): "quick done", format!("{kind}_step"): quick });
            assert_eq!(done["command_result"], expected);
        }
        assert_eq!(api.runs(), before + 1, "a repeated id ran again");

        let fails = step("probe_fail", json!({}));
        let failed = api.post(&name, params(kind, &fails, Value::Null), &format!("{kind}-2"), true).await;
        assert_eq!(
            failed["command_error"],
            json!({"type": error, "code": 500, "message": message, "details": "probe says no"})
        );
        let crash = step("probe_crash", json!({}));
        let crashed = api.post(&name, params(kind, &crash, versions()), &format!("{kind}-3"), true).await;
        assert_eq!(
            crashed["command_error"]["details"],
            format!("Unexpected exception performing {kind} step probe_crash. panic: boom")
        );
    }
}

#[tokio::test]
async fn each_kind_is_cancelled_by_the_id_of_its_command() {
    let api = Api::new();
    for (kind, ..) in KINDS {
        let (name, id) = (format!("{kind}.execute_{kind}_step"), format!("{kind}-1"));
        let endless = step("probe_progress", json!({}));
        let running = api.post(&name, params(kind, &endless, versions()), &id, false).await;
        assert_eq!(running["command_status"], "RUNNING");
        let cancel = api.post("anneal.cancel", json!({ "command_id": id }), &format!("{kind}-c"), true).await;
        assert_eq!(cancel["command_result"]["was_running"], true);
        let ended = api.ask("GET", &format!("/v1/commands/{id}?wait=true"), Value::Null).await;
        assert_eq!(ended["command_error"]["type"], "Cancelled", "{ended}");
        assert!(ended["command_result"][format!("{kind}_result")]["bytes_done"].is_u64(), "{ended}");
        assert_eq!(ended["command_result"][format!("{kind}_step")], endless);
    }
}

#[tokio::test]
async fn each_kind_runs_nothing_for_other_managers_or_with_wrong_arguments() {
    let api = Api::new();
    for (kind, error, _) in KINDS {
        let name = format!("{kind}.execute_{kind}_step");
        let quick = step("probe_quick", json!({}));
        let other = json!({ "generic_hardware_manager": "1.2" });
        let refused = api.post(&name, params(kind, &quick, other), &format!("{kind}-v"), true).await;
        assert_eq!(refused["command_status"], "CLEAN_VERSION_MISMATCH");
        for (number, (args, reported)) in [
            (json!({}), r#"argument "count": required, not given"#),
            (json!({"count": "secret"}), r#"argument "count": must be a whole number"#),
            (json!({"count": 4}), r#"argument "count": must be at most 3"#),
            (json!({"count": 1, "fast": true}), r#"argument "fast": this step has no such argument"#),
        ]
        .into_iter()
        .enumerate()
        {
            let typed = step("probe_typed", args);
            let id = format!("{kind}-{number}");
            let failed = api.post(&name, params(kind, &typed, versions()), &id, true).await;
            assert_eq!(failed["command_error"]["type"], error);
            assert_eq!(failed["command_error"]["details"], reported);
        }
    }
    assert_eq!(api.runs(), 0);
    let typed = step("probe_typed", json!({"count": 3}));
    let done = api.post("deploy.execute_deploy_step", params("deploy", &typed, versions()), "x", true).await;
    assert_eq!((done["command_result"]["deploy_result"].as_str(), api.runs()), (Some("typed done"), 1));
}

#[tokio::test]
async fn a_step_is_planned_by_its_manager_and_nothing_is_run() {
    let api = Api::new();
    let plan = async |step: Value, id: &str| {
        api.post("anneal.plan_erase", json!({"step": step, "node": {"uuid": "n"}}), id, true).await
    };
    let reported = plan(step("probe_typed", json!({"count": 3})), "a").await;
    assert_eq!(reported["command_result"], json!({"would": {"count": 3}, "to": "n"}), "{reported}");
    for (number, (asked, why)) in [
        (step("probe_typed", json!({"count": 4})), r#"argument "count": must be at most 3"#),
        (step("probe_quick", json!({})), "no plan of it"),
        (step("nosuch", json!({})), r#"no hardware manager of this machine offers the step "nosuch""#),
    ]
    .into_iter()
    .enumerate()
    {
        let refused = plan(asked, &format!("r{number}")).await;
        assert_eq!(
            (&refused["command_status"], &refused["command_error"]["type"]),
            (&json!("FAILED"), &json!("PlanError"))
        );
        assert_eq!(refused["command_error"]["details"], why);
    }
    assert_eq!(api.runs(), 0);
}

#[tokio::test]
async fn a_checkpoint_is_reported_while_a_step_runs_and_passed_to_its_next_run() {
    let api = Api::new();
    for (kind, ..) in KINDS {
        let (name, id) = (format!("{kind}.execute_{kind}_step"), format!("{kind}-1"));
        let mut asked = params(kind, &step("probe_args", json!({"save": {"at": 5}})), versions());
        asked["anneal"] = json!({"checkpoint": {"at": 4}, "later": true});
        api.post(&name, asked.clone(), &id, false).await;
        let reported = loop {
            let reported = api.ask("GET", &format!("/v1/commands/{id}?wait=false"), Value::Null).await;
            if reported.get("checkpoint").is_some() || reported["command_status"] != "RUNNING" {
                break reported;
            }
            tokio::task::yield_now().await;
        };
        if kind == "clean" {
            assert_eq!(reported["checkpoint"], json!({"at": 5}), "{reported}");
        }
        api.probe.gate.open();
        let ended = api.ask("GET", &format!("/v1/commands/{id}?wait=true"), Value::Null).await;
        assert_eq!(ended["command_result"][format!("{kind}_result")], json!({"at": 4}), "{ended}");
        assert_eq!(ended.get("checkpoint"), None, "one that has ended needs none");
        asked["anneal"] = json!("x");
        let wrong = api.post(&name, asked, &format!("{kind}-2"), true).await;
        assert_eq!(wrong["command_error"]["type"], "TypeError", "{wrong}");
    }
}
