//! Requests once sent to ironic-python-agent 13.0.0 are sent to our API; status and body must be
//! the same but for ids, times, versions, and the differences listed here with their reasons.

mod common;

use agentd::api;
use agentd::token::Token;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use common::Probe;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use tower::ServiceExt;

#[derive(Deserialize)]
struct Probed {
    method: String,
    path: String,
    body: Option<String>,
    status: u16,
    #[serde(default)]
    answer: Value,
    location: Option<String>,
}

/// Keys whose values differ by nature.
const FREE: [&str; 3] = ["id", "started_at", "version"];

/// Texts that hold Python's `repr` or its JSON parser's words: equal up to here.
const PREFIXES: [&str; 4] = [
    "400 Bad Request: Failed to decode JSON object: ",
    "Malformed clean_step, no \"step\" key: ",
    "Current versions: ",
    "Unexpected exception performing clean step probe_crash. ",
];

const TOKEN: &str = "tok-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

async fn ask(router: &Router, method: &str, path: &str, body: Option<&str>) -> (u16, Option<String>, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "127.0.0.1:9990")
        .body(Body::from(body.unwrap_or_default().to_owned()))
        .expect("request");
    let response = router.clone().oneshot(request).await.expect("infallible");
    let status = response.status().as_u16();
    let location =
        response.headers().get(header::LOCATION).map(|value| value.to_str().expect("text").to_owned());
    let body = to_bytes(response.into_body(), usize::MAX).await.expect("body");
    let text = String::from_utf8(body.to_vec()).expect("utf-8");
    (status, location, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test]
async fn our_api_answers_as_ipa_did() {
    let probe = Arc::new(Probe::default());
    let agent = common::agent(&probe);
    agent.set_token(Token::new(TOKEN).expect("token"));
    let router = api::router(agent, "http");
    let mut running = String::new();
    let lines = include_str!("fixtures/ipa_api_probes.jsonl").lines();
    for (number, line) in lines.enumerate() {
        let probed: Probed = serde_json::from_str(line).expect("fixture");
        let path = probed.path.replace("d278a73b-31c4-471c-bbb4-6e8aad8fa8f7", &running);
        if probed.method == "GET" && path.contains("wait=true") {
            probe.gate.open();
        }
        let (status, location, mut answer) =
            ask(&router, &probed.method, &path, probed.body.as_deref()).await;
        if answer["command_status"] == "RUNNING" {
            let id = answer["id"].as_str().expect("id").to_owned();
            if probed.answer["command_status"] == "RUNNING" {
                running = id;
            } else {
                // IPA's had ended by the time it answered; wait for ours.
                let path = format!("/v1/commands/{id}?wait=true&agent_token={TOKEN}");
                answer = ask(&router, "GET", &path, None).await.2;
            }
        }
        let what = format!("line {}: {} {}", number + 1, probed.method, probed.path);

        if wants_type_error(&probed) {
            // IPA's defect: it answers 500 and then for ever to every list. Ironic looks for this type.
            assert_eq!((status, &answer["command_error"]["type"]), (200, &"TypeError".into()), "{what}");
            continue;
        }
        if probed.status == 500 {
            assert_eq!(status, 200, "{what}: wrong parameters must not poison the list");
            assert!(answer["commands"].as_array().is_some_and(|list| list.len() > 10), "{what}");
            continue;
        }
        if probed.path.contains("/commands/")
            && probed.body.as_deref().is_some_and(|b| b.contains("get_partition_uuids"))
        {
            // We write no partition images, and say so.
            assert_eq!(status, 400, "{what}");
            continue;
        }
        assert_eq!(status, probed.status, "{what}: {answer}");
        assert_eq!(location, probed.location, "{what}");
        same(&probed.answer, &answer, &what);
    }
    assert!(!running.is_empty());
}

fn wants_type_error(probed: &Probed) -> bool {
    probed.status == 500 && probed.method == "POST"
}

/// Whatever IPA said must be in ours; `"(left out)"` stands for anything.
fn same(theirs: &Value, ours: &Value, what: &str) {
    match (theirs, ours) {
        (Value::Null, Value::String(empty)) if empty.is_empty() => {}
        (Value::String(text), _) if text == "(left out)" => assert!(!ours.is_null(), "{what}"),
        (Value::String(theirs), Value::String(ours)) => {
            let prefix = PREFIXES.iter().find(|prefix| theirs.starts_with(**prefix));
            let length = prefix.map_or(theirs.len(), |prefix| prefix.len());
            assert_eq!(Some(&theirs[..length]), ours.get(..length), "{what}");
            assert!(prefix.is_some() || theirs == ours, "{what}: {theirs} {ours}");
        }
        (Value::Object(theirs), Value::Object(ours)) => {
            for (key, value) in theirs {
                let ours = ours.get(key).unwrap_or_else(|| panic!("{what}: no {key}"));
                if !FREE.contains(&key.as_str()) {
                    same(value, ours, &format!("{what} {key}"));
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            assert_eq!(theirs.len(), ours.len(), "{what}");
            theirs.iter().zip(ours).for_each(|(theirs, ours)| same(theirs, ours, what));
        }
        _ => assert_eq!(theirs, ours, "{what}"),
    }
}

#[tokio::test]
async fn without_a_token_only_the_public_pages_are_served() {
    let router = api::router(common::agent(&Arc::default()), "https");
    for (path, expected) in [
        ("/", 200),
        ("/v1/", 200),
        ("/v1/status", 200),
        ("/v1/commands/", 401),
        ("/v1/commands/?agent_token=", 401),
        ("/commands/x?agent_token=", 401),
    ] {
        let request = Request::get(path).body(Body::empty()).expect("request");
        let status = router.clone().oneshot(request).await.expect("infallible").status();
        assert_eq!(status.as_u16(), expected, "{path}");
    }
}

#[tokio::test]
async fn bodies_and_ids_have_limits() {
    let agent = common::agent(&Arc::default());
    let token = "t".repeat(40);
    agent.set_token(Token::new(&token).expect("token"));
    let router = api::router(agent, "https");
    let post = async |body: String| {
        let uri = format!("/v1/commands/?agent_token={token}");
        let request = Request::post(uri).body(Body::from(body)).expect("request");
        router.clone().oneshot(request).await.expect("infallible").status().as_u16()
    };
    assert_eq!(post(" ".repeat(5 << 20)).await, 413);
    for id in ["\"\"", "\"a/b\"", "7", &format!("{:?}", "x".repeat(129))] {
        let body = format!(r#"{{"name":"standby.sync","params":{{}},"anneal_command_id":{id}}}"#);
        assert_eq!(post(body).await, 400, "{id}");
    }
    assert_eq!(
        post(r#"{"name":"standby.sync","params":{},"anneal_command_id":"a.b-c_1"}"#.into()).await,
        200
    );
}
