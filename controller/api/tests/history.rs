//! `GET /v1/nodes/{ident}/history`: the whole story, in Ironic's form.

use crate::common::{Api, keys};
use model::history::Severity;
use model::{Event, EventKind, Node, ProvisionState, Timestamp};
use serde_json::{Value, json};

/// A node that was enrolled, verified, and failed its cleaning: an event of each kind.
async fn storied(api: &Api) -> Node {
    let second = |n: i64| Timestamp(1_795_229_965_000_000 + n * 1_000_000);
    let event = |kind, severity, text: &str, at| Event::new(kind, severity, text.to_owned(), second(at));
    let mut node = api.node("n", ProvisionState::Enroll).await;
    let story: [(i64, ProvisionState, Vec<Event>); 4] = [
        (1, ProvisionState::Verifying, vec![event(EventKind::Transition, Severity::Info, "to verifying", 1)]),
        (
            4,
            ProvisionState::Manageable,
            vec![
                event(EventKind::Momentary, Severity::Info, "VERIFIED", 4),
                event(EventKind::Transition, Severity::Info, "to manageable", 4),
            ],
        ),
        (9, ProvisionState::CleanWait, vec![event(EventKind::Power, Severity::Info, "switched on", 9)]),
        (
            20,
            ProvisionState::CleanFail,
            vec![
                event(EventKind::Agent, Severity::Info, "the agent came", 19),
                event(EventKind::Step, Severity::Error, &"x".repeat(300), 20),
            ],
        ),
    ];
    for (at, state, events) in story {
        node.enter(state, None, second(at));
        node = api.store.update_node(node, events, None).await.unwrap();
    }
    node
}

#[tokio::test]
async fn each_event_has_time_text_and_states() {
    let api = Api::new();
    let node = storied(&api).await;
    let list = api.get("/v1/nodes/n/history?detail=True").await.is(200).body;
    let events = list["history"].as_array().unwrap();
    let shown: Vec<_> = events
        .iter()
        .map(|event| {
            let field = |name: &str| event[name].clone();
            json!([
                field("event_type"),
                field("state"),
                field("target_provision_state"),
                field("duration_seconds")
            ])
        })
        .collect();
    assert_eq!(
        shown,
        [
            json!(["transition", "enroll", null, 1]),
            json!(["momentary", "verifying", "manageable", 3]),
            json!(["transition", "verifying", "manageable", 3]),
            json!(["power", "manageable", null, 5]),
            json!(["agent", "clean wait", "available", 10]),
            json!(["step", "clean wait", "available", 11]),
        ]
    );
    assert_eq!(events[0]["created_at"], "2026-11-21T02:59:26+00:00");
    assert_eq!((&events[4]["severity"], &events[5]["severity"]), (&json!("INFO"), &json!("ERROR")));
    assert_eq!(events[5]["event"].as_str().unwrap().len(), 300);
    assert_eq!(events[5]["conductor"], "probe-conductor");
    // Ironic cuts long texts in the short form, and only there.
    let short = api.get("/v1/nodes/n/history").await.is(200).body["history"][5].clone();
    assert_eq!(short["event"], format!("{}...", "x".repeat(251)));
    let href =
        format!("http://127.0.0.1:6385/v1/nodes/{}/history/{}", node.uuid, short["uuid"].as_str().unwrap());
    assert_eq!(short["links"], json!([{"href": href, "rel": "self"}]));
    let one = api.get(href.strip_prefix("http://127.0.0.1:6385").unwrap()).await.is(200).body;
    assert_eq!(one, events[5]);
}

#[tokio::test]
async fn each_version_shows_the_fields_that_ironics_shows() {
    let api = Api::new();
    storied(&api).await;
    let short = ["created_at", "event", "links", "severity", "uuid"];
    // `anneal` is ours.
    let detail =
        ["anneal", "conductor", "created_at", "event", "event_type", "links", "severity", "user", "uuid"];
    let with = |more: &[&str]| {
        let mut all: Vec<_> = detail.iter().chain(more).map(|name| (*name).to_owned()).collect();
        all.sort();
        all
    };
    let stood = ["project", "state", "target_provision_state", "duration_seconds"];
    for (minor, expected) in [
        (78, with(&[])),
        (112, with(&[])),
        (113, with(&["project"])),
        (114, with(&["project"])),
        (115, with(&stood)),
    ] {
        let list = api.at(minor, "GET", "/v1/nodes/n/history?detail=1", None).await.is(200).body;
        assert_eq!(keys(&list["history"][0]), expected, "{minor}");
        let path = format!("/v1/nodes/n/history/{}", list["history"][0]["uuid"].as_str().unwrap());
        let one = api.at(minor, "GET", &path, None).await.is(200).body;
        assert_eq!(keys(&one), expected, "{minor}");
        let list = api.at(minor, "GET", "/v1/nodes/n/history", None).await.is(200).body;
        assert_eq!(keys(&list["history"][0]), short, "{minor}");
    }
}

#[tokio::test]
async fn it_is_sorted_and_comes_in_pages() {
    let api = Api::new();
    storied(&api).await;
    let pages = async |query: &str| {
        let mut path = format!("/v1/nodes/n/history?limit=4&{query}");
        let mut seen = Vec::new();
        loop {
            let page = api.get(&path).await.is(200).body;
            seen.extend(
                page["history"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|event| event["event"].as_str().unwrap().chars().take(10).collect::<String>()),
            );
            match page["next"].as_str() {
                Some(next) => path = next.strip_prefix("http://127.0.0.1:6385").unwrap().to_owned(),
                None => return seen,
            }
        }
    };
    let order = ["to verifyi", "VERIFIED", "to managea", "switched o", "the agent ", "xxxxxxxxxx"];
    let reversed: Vec<_> = order.iter().rev().copied().collect();
    assert_eq!(pages("").await, order);
    assert_eq!(pages("sort_key=created_at&sort_dir=desc").await, reversed);
    assert_eq!(pages("sort_key=id&detail=true").await, order);
    assert_eq!(pages("sort_key=event").await[..2], ["VERIFIED", "switched o"]);
    assert_eq!(pages("sort_key=severity").await[0], "xxxxxxxxxx");
    assert_eq!(
        pages("sort_key=duration_seconds").await,
        ["to verifyi", "VERIFIED", "to managea", "switched o", "the agent ", "xxxxxxxxxx"]
    );
}

/// Ironic shows any node's event under any other node.
#[tokio::test]
async fn a_node_shows_only_its_own_history() {
    let api = Api::new();
    storied(&api).await;
    api.node("other", ProvisionState::Enroll).await;
    let event = api.get("/v1/nodes/n/history").await.body["history"][0]["uuid"].as_str().unwrap().to_owned();
    let fault = api.get(&format!("/v1/nodes/other/history/{event}")).await.is(404).fault();
    assert_eq!(fault, format!("Node history record {event} could not be found."));
    api.get(&format!("/v1/nodes/other/history?marker={event}")).await.is(404);
    assert_eq!(api.get("/v1/nodes/other/history").await.is(200).body, json!({"history": []}));
}

#[tokio::test]
async fn flags_set_by_users_are_recorded_with_their_reason() {
    let api = Api::new();
    api.node("n", ProvisionState::Active).await;
    let set = |field: &str, value: Value| json!({"op": "add", "path": format!("/{field}"), "value": value});
    api.put("/v1/nodes/n/maintenance", json!({"reason": "fan"})).await.is(202);
    api.delete("/v1/nodes/n/maintenance").await.is(202);
    let both = json!([
        set("retired", json!(true)),
        set("retired_reason", json!("old")),
        set("protected", json!(true))
    ]);
    api.patch("/v1/nodes/n", both).await.is(200);
    api.patch("/v1/nodes/n", json!([{"op": "remove", "path": "/retired"}])).await.is(200);
    // What is no such flag is no event.
    api.patch("/v1/nodes/n", json!([set("extra/a", json!(1))])).await.is(200);
    let list = api.get("/v1/nodes/n/history?detail=true").await.is(200).body;
    let shown: Vec<_> = list["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| {
            assert_eq!((&event["event_type"], &event["state"]), (&json!("flag"), &json!("active")));
            event["event"].as_str().unwrap()
        })
        .collect();
    assert_eq!(
        shown,
        [
            "maintenance set by a user: fan",
            "maintenance unset by a user",
            "retired set by a user: old",
            "protected set by a user",
            "retired unset by a user",
        ]
    );
}
