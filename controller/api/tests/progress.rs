//! `GET /v1/anneal/nodes/{ident}/progress`: the run of a node, and how far its disks are, as it goes on.

use crate::common::Api;
use crate::common::parts::Parts;
use crate::rights::callers::{User, users};
use api::auth::Role;
use api::{Auth, NodeFeed};
use axum::body::Body;
use axum::http::Request;
use model::agent::{AgentKind, AgentState};
use model::{Cursor, Node, Run, RunKind, StepResult, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;
use store::{HeartbeatRecord, TokenRequest};
use tokio_util::sync::CancellationToken;

const NOW: Timestamp = Timestamp(1_795_229_965_000_000);
const TOKEN: &str = "the-token-of-the-agent";

/// A node that runs the second of three steps.
fn at_work(node: &mut Node) {
    let planned = |step: &str| json!({"interface": "deploy", "step": step, "priority": 10});
    let mut run = Run::new(RunKind::AutomatedClean, NOW);
    let plan = json!([planned("one"), planned("erase_devices"), planned("three")]);
    run.plan = Some(serde_json::from_value(plan).unwrap());
    run.results = vec![StepResult::success(0, "c0".to_owned(), NOW, Value::Null)];
    run.index = Some(1);
    run.cursor = Cursor::Issued {
        command_id: "c1".to_owned(),
        at: NOW,
        boot_id: Some("b".to_owned()),
        process_id: Some("p".to_owned()),
        accepted: true,
    };
    run.booted = true;
    node.run = Some(run);
    node.other.insert("owner".into(), "p-owner".into());
    node.other.insert("lessee".into(), "p-lessee".into());
}

/// The agent of a node, which has its token.
async fn with_agent(api: &Api, name: &str) -> Node {
    let mut node = api.node_awaiting_agent(name).await;
    api.store.grant_token(node.uuid, TokenRequest::without_nonce(TOKEN, Some("b"), NOW)).await.unwrap();
    at_work(&mut node);
    api.store.update_node(node, Vec::new(), None).await.unwrap()
}

/// A heartbeat that reports so many bytes.
async fn beat(api: &Api, node: &Node, bytes: u64) {
    let disk = json!({"device": "/dev/nvme0n1", "phase": "erasing", "bytes_done": bytes, "bytes_total": 100, "rate": 7, "eta": 9});
    let state = AgentState {
        boot_id: "b".to_owned(),
        process_id: "p".to_owned(),
        evidence_key: None,
        running: Some("c1".to_owned()),
        ended: Vec::new(),
        progress: Some(json!({"disks": [disk]})),
    };
    let heartbeat = HeartbeatRecord {
        callback_url: "https://192.0.2.7:9999".to_owned(),
        verify_ca: None,
        agent_version: Some("1".to_owned()),
        at: NOW,
        agent: AgentKind::Anneal(state),
    };
    api.store.record_heartbeat(node.uuid, TOKEN, heartbeat).await.unwrap();
}

fn data(part: &str) -> Value {
    let data = part.lines().find_map(|line| line.strip_prefix("data: ")).expect("data");
    serde_json::from_str(data).unwrap()
}

#[tokio::test]
async fn the_run_is_shown_step_by_step_with_its_disks() {
    let api = Api::new();
    let node = with_agent(&api, "n").await;
    beat(&api, &node, 40).await;
    let shown = api.get("/v1/anneal/nodes/n/progress").await.is(200).body;
    let states: Vec<_> =
        shown["run"]["steps"].as_array().unwrap().iter().map(|step| &step["state"]).collect();
    assert_eq!(states, ["done", "running", "pending"]);
    assert_eq!(shown["run"]["kind"], "automated_clean");
    assert_eq!(shown["progress"]["disks"][0]["bytes_done"], 40);
    assert_eq!(shown["waits_for"]["text"], "step deploy.erase_devices to end");
    assert_eq!(shown["agent"]["version"], "1");
    assert!(!shown.to_string().contains(TOKEN) && !shown.to_string().contains("192.0.2.7"), "{shown}");
    api.get("/v1/anneal/nodes/none/progress").await.is(404);
    api.get("/v1/anneal/nodes/n/progress?x=1").await.is(400);
}

#[tokio::test]
async fn who_leases_a_node_sees_its_state_and_not_its_inside() {
    let api = Api::guarded(Auth::Basic(users()));
    let node = with_agent(&api, "n").await;
    beat(&api, &node, 40).await;
    for (relation, inside) in [("owner", true), ("lessee", false)] {
        let user = User { relation, role: Role::Reader };
        let request = Request::get(format!("/v1/anneal/nodes/{}/progress", node.uuid))
            .header("Authorization", user.header())
            .header("X-OpenStack-Ironic-API-Version", "1.115");
        let shown = api.raw(request.body(Body::empty()).unwrap()).await.is(200).body;
        assert_eq!(shown["provision_state"], "clean wait");
        assert_eq!(
            (shown["progress"].is_object(), shown["agent"].is_object()),
            (inside, inside),
            "{relation}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_follows_heartbeats_and_hears_of_no_other_node() {
    let api = Api::new();
    let (node, other) = (with_agent(&api, "n").await, with_agent(&api, "other").await);
    let mut stream = Parts::open(&api.router, "/v1/anneal/nodes/n/progress", &[]).await;
    let first = stream.next().await.unwrap();
    assert!(first.starts_with("retry: 2000\nevent: progress\ndata: {\"now\":\""), "{first}");
    for bytes in [10, 20, 30] {
        beat(&api, &node, bytes).await;
        let part = stream.within(Duration::from_secs(2)).await.expect("an event within two seconds");
        assert_eq!(data(&part)["progress"]["disks"][0]["bytes_done"], bytes);
    }
    beat(&api, &other, 99).await;
    assert_eq!(stream.within(Duration::from_secs(14)).await, None);
    assert_eq!(stream.next().await.as_deref(), Some(": keep-alive\n\n"));
    // Its name may change meanwhile.
    let mut renamed = api.store_node(&node).await;
    renamed.name = Some("m".to_owned());
    let renamed = api.store.update_node(renamed, Vec::new(), None).await.unwrap();
    assert_eq!(data(&stream.next().await.unwrap())["name"], "m");
    api.store.delete_node(renamed.uuid, renamed.version, Vec::new()).await.unwrap();
    assert_eq!(stream.next().await.as_deref(), Some("event: gone\ndata: {}\n\n"));
    assert_eq!(stream.next().await, None);
}

/// Many heartbeats of one node are one event: an agent cannot make the controller send more.
#[tokio::test(start_paused = true)]
async fn a_stream_sends_at_most_two_events_a_second() {
    let api = Api::new();
    let node = with_agent(&api, "n").await;
    let mut stream = Parts::open(&api.router, "/v1/anneal/nodes/n/progress", &[]).await;
    stream.next().await.unwrap();
    let began = tokio::time::Instant::now();
    let mut events = 0;
    for bytes in 0..50 {
        beat(&api, &node, bytes).await;
        events += usize::from(stream.within(Duration::from_millis(100)).await.is_some());
    }
    let most = began.elapsed().as_millis() / 500 + 1;
    assert!(events > 1 && events as u128 <= most, "{events} events in {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_shows_that_it_is_alive_and_ends_after_an_hour() {
    let api = Api::new();
    with_agent(&api, "n").await;
    let mut stream = Parts::open(&api.router, "/v1/anneal/nodes/n/progress", &[]).await;
    stream.next().await.unwrap();
    let begun = tokio::time::Instant::now();
    let mut comments = 0;
    while let Some(part) = stream.next().await {
        assert_eq!(part, ": keep-alive\n\n");
        comments += 1;
    }
    assert_eq!((comments, begun.elapsed().as_secs()), (240, 3600));
}

#[tokio::test]
async fn there_are_so_many_streams_and_no_more_and_they_end_with_the_controller() {
    let mut made = Api::new();
    with_agent(&made, "n").await;
    let stop = CancellationToken::new();
    let app = api::App { nodes: NodeFeed::new(2, stop.clone()), ..made.app.clone() };
    let router = api::router(app);
    let path = "/v1/anneal/nodes/n/progress";
    let mut streams =
        [Parts::open(&router, path, &[]).await, Parts::open(&router, "/v1/anneal/fleet", &[]).await];
    for stream in &mut streams {
        stream.next().await.unwrap();
    }
    made.router = router.clone();
    let ask = |accept: &'static str| {
        let request =
            Request::get(path).header("accept", accept).header("X-OpenStack-Ironic-API-Version", "1.115");
        made.raw(request.body(Body::empty()).unwrap())
    };
    let full = ask("text/event-stream").await.is(503);
    assert_eq!(full.header("retry-after"), Some("30"));
    ask("application/json").await.is(200);
    stop.cancel();
    for stream in &mut streams {
        assert_eq!(stream.next().await, None);
    }
}
