//! The id of a request: in its answer, in the log, in the run and the events that it causes.

use crate::common::Api;
use axum::body::Body;
use axum::http::Request;
use model::ProvisionState;
use room::Log;
use serde_json::{Value, json};

#[tokio::test]
async fn the_run_and_the_events_that_a_request_causes_carry_its_id() {
    let (api, log) = (Api::new(), Log::default());
    let _collecting = log.collect();
    let made = api.post("/v1/nodes", json!({"name": "n", "driver": "fake-hardware"})).await.is(201);
    let node = api.store.node_by_ident("n").await.unwrap();
    let managed = api.put("/v1/nodes/n/states/provision", json!({"target": "manage"})).await.is(202);
    let mut node = api.store_node(&node).await;
    node.enter(ProvisionState::Manageable, None, node.created_at);
    api.update(node.clone()).await;
    let provided = api.put("/v1/nodes/n/states/provision", json!({"target": "provide"})).await.is(202);

    let answers = [made, managed, provided];
    let ids: Vec<_> = answers.iter().map(|answer| answer.header("openstack-request-id").unwrap()).collect();
    let run = api.store_node(&node).await.run.unwrap();
    assert_eq!(run.request_id.as_deref(), Some(ids[2]));
    let events = api.store.history(node.uuid).await.unwrap();
    let caused: Vec<_> = events.iter().map(|event| event.request_id.as_deref().unwrap()).collect();
    assert_eq!(caused, ids);

    // Each was logged when it was stored, within the span of its request.
    let logged = log.events();
    let uuid = node.uuid.to_string();
    let states = ["enroll", "verifying", "cleaning"];
    for (index, event) in events.iter().enumerate() {
        let fields = json!({"message": event.text, "node_uuid": uuid, "provision_state": states[index],
            "kind": "transition", "request_id": ids[index]});
        assert_eq!(logged[index]["fields"], fields);
        assert_eq!(logged[index]["level"], "INFO");
        let span = &logged[index]["span"];
        let path = if index == 0 { "/v1/nodes" } else { "/v1/nodes/{ident}/states/provision" };
        let method = if index == 0 { "POST" } else { "PUT" };
        let expected = json!({"name": "request", "request_id": ids[index], "method": method, "path": path});
        assert_eq!(*span, expected);
    }
    assert_eq!(logged.len(), 3);
}

#[tokio::test]
async fn a_clients_own_id_is_logged_and_not_sent_back() {
    let good = "req-8ea1b4a5-9f4d-4c5a-9d2b-3f1e6c7d8a90";
    let (upper, simple) = (good[4..].to_uppercase(), good[4..].replace('-', ""));
    let sent = [
        good,
        "req-x",
        &good[4..],
        &format!("REQ-{upper}"),
        &format!("req-{upper}"),
        &format!("req-{simple}"),
    ];
    for sent in sent {
        let (api, log) = (Api::new(), Log::default());
        let _collecting = log.collect();
        let request = Request::get("/v1/nosuch").header("X-OpenStack-Request-ID", sent);
        let answer = api.raw(request.body(Body::empty()).unwrap()).await.is(404);
        let line =
            log.lines().into_iter().find(|line| line["fields"]["message"] == "request answered").unwrap();
        let id = answer.header("x-openstack-request-id").unwrap();
        assert_ne!(id, sent);
        assert_eq!(line["span"]["request_id"], id);
        assert_eq!(
            line["span"].get("global_request_id").and_then(Value::as_str),
            (sent == good).then_some(sent)
        );
    }
}
