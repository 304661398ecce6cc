//! Requests once sent to ironic-python-agent 13.0.0 are sent to our API. Status, redirect and every member of every body
//! are compared; what differs must be in [`DIFFERENCES`], word for word, and all of that must occur.

use crate::api;
use crate::common;

use api::{TOKEN, ask, router};
use common::Probe;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

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

/// Members that name this one process or this one command.
const FREE: [&str; 3] = ["id", "started_at", "version"];

/// A deliberate difference: line of the fixture, where in the answer, what ours says, and why.
type Difference = (usize, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const DIFFERENCES: &[Difference] = &[
    (21, "/body/faultstring", r#""400 Bad Request: Failed to decode JSON object: key must be a string at line 1 column 2""#, PYTHON),
    (22, "/body/faultstring", r#""400 Bad Request: Failed to decode JSON object: EOF while parsing a value at line 1 column 0""#, PYTHON),
    (28, "/body/faultcode", "null", POISONED),
    (28, "/body/faultstring", "null", POISONED),
    (28, "/status", "200", POISONED),
    (29, "/body/command_error/details", r#""Malformed clean_step, no \"step\" key: {\"interface\":\"deploy\"}""#, PYTHON),
    (31, "/body/command_error/details", r#""Current versions: {\"ProbeHardwareManager\":\"1.0\",\"generic_hardware_manager\":\"1.2\"}, versions used by ironic: {\"other\":\"9\"}""#, PYTHON),
    (34, "/body/command_error/details", r#""Unexpected exception performing clean step probe_crash. panic: boom""#, PYTHON),
    (46, "/body/faultcode", "null", POISONED),
    (46, "/body/faultstring", "null", POISONED),
    (46, "/status", "200", POISONED),
];

/// Experiment 9: wrong parameters make it answer 500, and from then on it answers 500 to every list of its commands. Ours
/// keeps the error with type `TypeError`, which is what Ironic looks for.
const POISONED: &str = "ED-009";
/// The last words are those of Python's JSON parser, of its `repr` or of an exception: a text for people, and of another
/// program here.
const PYTHON: &str = "python";

#[tokio::test]
async fn our_api_answers_as_ipa_did() {
    let probe = Arc::new(Probe::default());
    let router = router(common::agent(&probe));
    let mut running = String::new();
    let mut found = Vec::new();
    let lines = include_str!("fixtures/ipa_api_probes.jsonl").lines();
    for (number, line) in lines.enumerate() {
        let probed: Probed = serde_json::from_str(line).expect("fixture");
        let path = probed.path.replace("d278a73b-31c4-471c-bbb4-6e8aad8fa8f7", &running);
        if probed.method == "GET" && path.contains("wait=true") {
            probe.gate.open();
        }
        let (status, mut answer, location) =
            ask(&router, &probed.method, &path, probed.body.unwrap_or_default()).await;
        if answer["command_status"] == "RUNNING" {
            let id = answer["id"].as_str().expect("id").to_owned();
            if probed.answer["command_status"] == "RUNNING" {
                running = id;
            } else {
                // IPA's had ended by the time it answered; wait for ours.
                let path = format!("/v1/commands/{id}?wait=true&agent_token={TOKEN}");
                answer = ask(&router, "GET", &path, "").await.1;
            }
        }
        let theirs = json!({"status": probed.status, "location": probed.location, "body": probed.answer});
        let ours = json!({"status": status, "location": location, "body": answer});
        compare(&theirs, &ours, "", &mut |at, ours| {
            found.push((number + 1, at.to_owned(), ours.to_string()))
        });
    }
    assert!(!running.is_empty());
    let listed: Vec<_> =
        DIFFERENCES.iter().map(|(line, at, ours, _)| (*line, (*at).to_owned(), (*ours).to_owned())).collect();
    assert_eq!(found, listed);
}

/// What of theirs is otherwise in ours, with its place. `"(left out)"` in the fixture stands for anything that is there.
fn compare(theirs: &Value, ours: &Value, at: &str, differs: &mut impl FnMut(&str, &Value)) {
    match (theirs, ours) {
        (Value::Null, Value::String(empty)) if empty.is_empty() => {}
        (Value::String(text), _) if text == "(left out)" && !ours.is_null() => {}
        (Value::Object(theirs), Value::Object(ours)) => {
            for (key, value) in theirs.iter().filter(|(key, _)| !FREE.contains(&key.as_str())) {
                compare(value, ours.get(key).unwrap_or(&Value::Null), &format!("{at}/{key}"), differs);
            }
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            for (index, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
                compare(theirs, ours, &format!("{at}/{index}"), differs);
            }
        }
        _ if theirs == ours => {}
        _ => differs(at, ours),
    }
}

/// What is called a defect of ironic-python-agent is listed as one, and a text that ends otherwise begins alike.
#[test]
fn differences_have_reasons() {
    let defects = include_str!("../../../docs/ironic-defects.md");
    let lines: Vec<&str> = include_str!("fixtures/ipa_api_probes.jsonl").lines().collect();
    for (line, at, ours, why) in DIFFERENCES {
        if *why != PYTHON {
            assert!(defects.contains(&format!("| {why} |")), "{why} is not in docs/ironic-defects.md");
            continue;
        }
        let probed: Value = serde_json::from_str(lines[line - 1]).expect("fixture");
        let theirs = probed["answer"].pointer(at.trim_start_matches("/body")).and_then(Value::as_str);
        let ours: String = serde_json::from_str(ours).expect("a text");
        let alike = theirs.expect("a text").chars().zip(ours.chars()).take_while(|(a, b)| a == b).count();
        assert!(alike >= "Current versions: {".len(), "line {line} begins otherwise: {ours}");
    }
}

#[tokio::test]
async fn without_a_token_only_the_public_pages_are_served() {
    let router = agentd::api::router(common::agent(&Arc::default()), "https");
    for (path, expected) in [
        ("/", 200),
        ("/v1/", 200),
        ("/v1/status", 200),
        ("/v1/commands/", 401),
        ("/v1/commands/?agent_token=", 401),
        ("/commands/x?agent_token=", 401),
    ] {
        assert_eq!(ask(&router, "GET", path, "").await.0, expected, "{path}");
    }
}

#[tokio::test]
async fn bodies_and_ids_have_limits() {
    let router = router(common::agent(&Arc::default()));
    let uri = format!("/v1/commands/?agent_token={TOKEN}");
    let post = async |body: String| ask(&router, "POST", &uri, body).await.0;
    assert_eq!(post(" ".repeat((32 << 20) + 1)).await, 413);
    for id in ["\"\"", "\"a/b\"", "7", &format!("{:?}", "x".repeat(129))] {
        let body = format!(r#"{{"name":"standby.sync","params":{{}},"anneal_command_id":{id}}}"#);
        assert_eq!(post(body).await, 400, "{id}");
    }
    assert_eq!(
        post(r#"{"name":"standby.sync","params":{},"anneal_command_id":"a.b-c_1"}"#.into()).await,
        200
    );
}
