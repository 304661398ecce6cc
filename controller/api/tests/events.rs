//! `GET /v1/anneal/events`: pages and streams.

use crate::common::Api;
use crate::common::parts::Parts;
use axum::body::Body;
use axum::http::Request;
use model::history::Severity;
use model::{Event, EventKind, Node, ProvisionState, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;
use store::KeptEvents;

fn event(text: &str) -> Event {
    Event::new(EventKind::Step, Severity::Info, text.to_owned(), Timestamp(5_000_000))
}

/// A node whose writes have these events.
async fn storied(api: &Api, name: &str, texts: &[&str]) -> Node {
    let mut node = api.node(name, ProvisionState::Manageable).await;
    for text in texts {
        node = api.store.update_node(node, vec![event(text)], None).await.unwrap();
    }
    node
}

fn column(page: &Value, name: &str) -> Vec<Value> {
    page["events"].as_array().unwrap().iter().map(|event| event[name].clone()).collect()
}

#[tokio::test]
async fn pages_go_on_from_cursor_to_cursor() {
    let api = Api::new();
    let start = api.get("/v1/anneal/events?after=latest").await.is(200).body;
    assert_eq!((&start["events"], &start["more"]), (&json!([]), &json!(false)));
    let start = start["next"].as_str().unwrap();
    storied(&api, "n", &["one", "two", "three"]).await;
    let mut after = start.to_owned();
    for (text, more) in [("one", true), ("two", true), ("three", false)] {
        let page = api.get(&format!("/v1/anneal/events?limit=1&after={after}")).await.is(200).body;
        assert_eq!((column(&page, "text"), &page["more"]), (vec![json!(text)], &json!(more)));
        assert_eq!(page["events"][0]["cursor"], page["next"]);
        after = page["next"].as_str().unwrap().to_owned();
    }
    let end = api.get(&format!("/v1/anneal/events?after={after}")).await.is(200).body;
    assert_eq!(end, json!({"events": [], "next": after, "more": false}));
}

#[tokio::test]
async fn events_are_chosen_by_node_and_type() {
    let api = Api::new();
    let node = storied(&api, "n", &["one"]).await;
    storied(&api, "other", &["two"]).await;
    let gone = storied(&api, "gone", &["three"]).await;
    api.put("/v1/nodes/n/maintenance", json!({"reason": "fan"})).await.is(202);
    api.store.delete_node(gone.uuid, gone.version, vec![event("four")]).await.unwrap();
    let texts = async |query: &str| {
        column(&api.get(&format!("/v1/anneal/events?{query}")).await.is(200).body, "text")
    };
    assert_eq!(texts("node=other").await, ["two"]);
    assert_eq!(texts(&format!("node={}", node.uuid)).await, ["one", "maintenance set by a user: fan"]);
    assert_eq!(texts(&format!("node={}&type=step", gone.uuid)).await, ["three", "four"]);
    assert_eq!(texts("type=flag,power").await, ["maintenance set by a user: fan"]);
    let page = api.get("/v1/anneal/events?type=flag&limit=1").await.is(200).body;
    assert_eq!((&page["events"], &page["more"]), (&json!([]), &json!(true)), "what was looked at is counted");
    for (query, status) in [
        ("node=gone", 404),
        ("type=weather", 400),
        ("after=yesterday", 400),
        ("limit=0", 400),
        ("limit=x", 400),
        ("marker=1", 400),
        ("after=ffff-00000000", 410),
    ] {
        let refused = api.get(&format!("/v1/anneal/events?{query}")).await;
        assert_eq!(refused.status, status, "{query}: {}", refused.text);
    }
}

#[tokio::test]
async fn changes_of_users_are_logged_with_their_request() {
    let api = Api::new();
    let made = api.post("/v1/nodes", json!({"driver": "fake-hardware", "name": "n"})).await.is(201);
    let patch = json!([
        {"op": "add", "path": "/extra/secret", "value": "hunter2"},
        {"op": "add", "path": "/driver_info/fake_password", "value": "hunter3"},
    ]);
    let patched = api.patch("/v1/nodes/n", patch).await.is(200);
    api.put("/v1/nodes/n/traits", json!({"traits": ["CUSTOM_A"]})).await.is(204);
    // What changes nothing is no change.
    let same = json!([{"op": "add", "path": "/extra/secret", "value": "hunter2"}]);
    api.patch("/v1/nodes/n", same).await.is(200);
    let deleted = api.delete("/v1/nodes/n").await.is(204);
    let answer = api.get("/v1/anneal/events").await.is(200);
    assert!(!answer.text.contains("hunter"), "values are in no event: {}", answer.text);
    let types = column(&answer.body, "type");
    assert_eq!(types, ["transition", "change", "change", "deleted"], "{}", answer.text);
    assert_eq!(
        column(&answer.body, "text")[1..],
        ["driver_info, extra changed by a user", "traits changed by a user", "deleted by a user"]
    );
    let requests = column(&answer.body, "request_id");
    for (index, of) in [(0, &made), (1, &patched), (3, &deleted)] {
        assert_eq!(requests[index], of.header("openstack-request-id").unwrap());
    }
    assert_eq!(answer.body["events"][3]["provision_state"], Value::Null);
}

#[tokio::test]
async fn the_answer_to_a_cursor_that_is_too_old_says_where_to_go_on() {
    let api = Api::new();
    storied(&api, "n", &["one", "two", "three"]).await;
    let first = api.get("/v1/anneal/events?limit=1").await.is(200).body["next"].clone();
    let kept = KeptEvents { age: Duration::from_secs(1 << 40), number: 1 };
    api.store.prune_events(kept, Timestamp(5_000_000)).await.unwrap();
    let gone = api.get(&format!("/v1/anneal/events?after={}", first.as_str().unwrap())).await.is(410);
    let fault = gone.fault();
    let oldest = fault.split("after=").nth(1).unwrap().split(',').next().unwrap();
    for query in [format!("?after={oldest}"), String::new()] {
        let page = api.get(&format!("/v1/anneal/events{query}")).await.is(200).body;
        assert_eq!(column(&page, "text"), ["three"], "{query}: {fault}");
    }
}

/// The parts of a stream of events.
async fn open(api: &Api, query: &str, last: Option<&str>) -> Parts {
    let last: Vec<_> = last.into_iter().map(|last| ("last-event-id", last)).collect();
    Parts::open(&api.router, &format!("/v1/anneal/events{query}"), &last).await
}

/// The event of a block of a stream, whose id is its cursor.
fn decoded(block: &str) -> Value {
    let (id, data) = block.split_once('\n').unwrap();
    let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(id, format!("id: {}", event["cursor"].as_str().unwrap()));
    event
}

#[tokio::test]
async fn a_stream_sends_what_is_there_and_then_what_comes() {
    let api = Api::new();
    let node = storied(&api, "n", &["one", "two"]).await;
    let mut stream = open(&api, "", None).await;
    let opening = stream.next().await.unwrap();
    let events = opening.strip_prefix("retry: 2000\n: events\n\n").unwrap();
    let events: Vec<Value> = events.trim_end().split("\n\n").map(decoded).collect();
    assert_eq!([&events[0]["text"], &events[1]["text"]], ["one", "two"]);
    api.store.update_node(node, vec![event("three")], None).await.unwrap();
    assert_eq!(decoded(stream.next().await.unwrap().trim_end())["text"], "three");

    // A browser that comes back goes on where it was, whatever its URL says.
    let first = events[0]["cursor"].as_str().unwrap();
    let mut again = open(&api, "?after=latest", Some(first)).await;
    let opening = again.next().await.unwrap();
    assert!(!opening.contains("\"one\"") && opening.contains("\"two\"") && opening.contains("\"three\""));
}

#[tokio::test]
async fn a_stream_says_where_it_stands_also_by_what_is_not_for_the_client() {
    let api = Api::new();
    let node = storied(&api, "n", &["one"]).await;
    let other = storied(&api, "other", &[]).await;
    let end = |page: Value| page["next"].as_str().unwrap().to_owned();
    let latest = end(api.get("/v1/anneal/events?after=latest").await.is(200).body);
    let mut stream = open(&api, &format!("?after=latest&node={}", node.uuid), None).await;
    assert_eq!(stream.next().await.unwrap(), format!("retry: 2000\n: events\n\nid: {latest}\n\n"));
    api.store.update_node(other, vec![event("two")], None).await.unwrap();
    let latest = end(api.get("/v1/anneal/events?after=latest").await.is(200).body);
    assert_eq!(stream.next().await.unwrap(), format!("id: {latest}\n\n"));
}

#[tokio::test]
async fn a_stream_whose_cursor_gets_too_old_says_so_and_ends() {
    let api = Api::new();
    let node = storied(&api, "n", &["one"]).await;
    let mut stream = open(&api, "", None).await;
    stream.next().await.unwrap();
    // Two events, of which the stream hears when the older is gone already.
    let node = api.store.update_node(node, vec![event("two"), event("three")], None).await.unwrap();
    api.store.update_node(node, vec![event("four")], None).await.unwrap();
    let kept = KeptEvents { age: Duration::from_secs(1 << 40), number: 1 };
    api.store.prune_events(kept, Timestamp(5_000_000)).await.unwrap();
    let part = stream.next().await.unwrap();
    let oldest = api.get("/v1/anneal/events").await.is(200).body;
    assert_eq!(column(&oldest, "text"), ["four"]);
    assert!(part.starts_with("event: gone\ndata: {\"oldest\":\"") && part.ends_with("\"}\n\n"), "{part}");
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn there_are_so_many_streams_and_no_more_and_they_end_with_the_controller() {
    let (api, stop) = Api::with_streams(2);
    let mut streams = [open(&api, "", None).await, open(&api, "", None).await];
    for stream in &mut streams {
        stream.next().await.unwrap();
    }
    let ask = || {
        let request = Request::get("/v1/anneal/events").header("accept", "text/event-stream");
        api.raw(request.body(Body::empty()).unwrap())
    };
    let full = ask().await.is(503);
    assert_eq!(full.header("retry-after"), Some("30"));
    api.get("/v1/anneal/events").await.is(200);
    stop.cancel();
    for stream in &mut streams {
        assert_eq!(stream.next().await, None);
    }
    drop(streams);
    // Its place is free again; it ends after what is there.
    let mut late = open(&api, "", None).await;
    late.next().await.unwrap();
    assert_eq!(late.next().await, None);
}

/// Nothing happens: a comment shows that the stream is alive, and after an hour it ends, so that rights are checked anew.
#[tokio::test(start_paused = true)]
async fn a_silent_stream_shows_that_it_is_alive_and_ends_after_an_hour() {
    let api = Api::new();
    let mut stream = open(&api, "", None).await;
    stream.next().await.unwrap();
    let begun = tokio::time::Instant::now();
    let mut comments = 0;
    while let Some(part) = stream.next().await {
        assert_eq!(part, ": keep-alive\n\n");
        comments += 1;
    }
    assert_eq!((comments, begun.elapsed().as_secs()), (240, 3600));
}
