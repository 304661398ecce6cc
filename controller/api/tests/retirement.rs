//! `specs/node-retirement.txt` at the API.

use crate::common::Api;
use model::{ProvisionState, Timestamp};
use serde_json::{Value, json};

fn retire() -> Value {
    json!([
        {"op": "add", "path": "/retired", "value": true},
        {"op": "add", "path": "/retired_reason", "value": "old"},
    ])
}

fn unretire() -> Value {
    json!([{"op": "remove", "path": "/retired"}])
}

/// specs/node-retirement.txt: in any state except AVAILABLE, in transient ones too; and the filter finds it there.
#[tokio::test]
async fn a_node_may_be_retired_in_every_state_but_available() {
    let api = Api::new();
    for state in ProvisionState::ALL {
        let name = state.as_str().replace(' ', "-");
        api.node_with(&name, state, |node| node.target_provision_state = state.target()).await;
        let uri = format!("/v1/nodes/{name}");
        let answer = api.patch(&uri, retire()).await;
        let allowed = state != ProvisionState::Available;
        assert_eq!(answer.status, if allowed { 200 } else { 409 }, "{name}: {}", answer.body);
        let shown = api.get(&uri).await.is(200).body;
        assert_eq!(shown["retired"], json!(allowed), "{name}");
        assert_eq!(shown["retired_reason"], if allowed { json!("old") } else { Value::Null }, "{name}");
        assert_eq!(shown["provision_state"], state.as_str(), "retirement moves no node");
        // Anything else still waits for the end of the transition.
        let both = json!([
            {"op": "add", "path": "/retired_reason", "value": "older"},
            {"op": "add", "path": "/extra/a", "value": 1},
        ]);
        if state == ProvisionState::Cleaning {
            assert_eq!(api.patch(&uri, both).await.status, 409);
        }
        for (query, count) in [("True", usize::from(allowed)), ("False", usize::from(!allowed))] {
            let found = api.get(&format!("/v1/nodes?retired={query}")).await.is(200).body;
            assert_eq!(found["nodes"].as_array().unwrap().len(), count, "{name}");
        }
        // And it may be taken back in the same states; the reason goes along.
        if allowed {
            let shown = api.patch(&uri, unretire()).await.is(200).body;
            assert_eq!(
                (&shown["retired"], &shown["retired_reason"]),
                (&json!(false), &Value::Null),
                "{name}"
            );
        }
        let node = api.store.node_by_ident(&name).await.unwrap();
        api.store.delete_node(node.uuid, node.version, vec![]).await.unwrap();
    }
}

/// "The ‘retired’ field can also be set for nodes in transient states, as long as the node is not locked."
#[tokio::test(start_paused = true)]
async fn a_locked_node_is_not_retired() {
    let api = Api::new();
    for (index, state) in [ProvisionState::CleanWait, ProvisionState::Active].into_iter().enumerate() {
        let name = format!("n{index}");
        let node = api.node(&name, state).await;
        let until = Timestamp(i64::MAX);
        let lease = api.store.take_lease(node.uuid, "host", Timestamp(0), until).await.unwrap().unwrap();
        let uri = format!("/v1/nodes/{name}");
        let fault = api.patch(&uri, retire()).await.is(409).fault();
        let says = format!(
            "Node {} is locked by host host, please retry after the current operation is completed.",
            node.uuid
        );
        assert_eq!(fault, says);
        assert_eq!(api.store.node(node.uuid).await.unwrap(), node);
        api.store.release_lease(lease).await.unwrap();
        api.patch(&uri, retire()).await.is(200);
    }
}

/// A lock that is given back soon is waited for.
#[tokio::test(start_paused = true)]
async fn a_retirement_waits_for_a_short_pass() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::CleanWait).await;
    let until = Timestamp(i64::MAX);
    let lease = api.store.take_lease(node.uuid, "host", Timestamp(0), until).await.unwrap().unwrap();
    let (answer, ()) = tokio::join!(biased; api.patch("/v1/nodes/n", retire()), async {
        api.store.release_lease(lease).await.unwrap();
    });
    answer.is(200);
}

#[tokio::test]
async fn a_retired_node_is_neither_provided_nor_deployed() {
    let api = Api::new();
    for (state, target, doing) in [
        (ProvisionState::Manageable, "provide", "providing"),
        (ProvisionState::DeployFail, "active", "provisioning"),
    ] {
        let node = api.node_with(target, state, |node| node.retired = true).await;
        let path = format!("/v1/nodes/{target}/states/provision");
        let fault = api.put(&path, json!({"target": target})).await.is(409).fault();
        let says =
            format!("The {doing} operation can't be performed on node {} because it is retired.", node.uuid);
        assert_eq!(fault, says);
        assert_eq!(api.store.node(node.uuid).await.unwrap(), node);
        // Not without taking it back first.
        api.patch(&format!("/v1/nodes/{target}"), unretire()).await.is(200);
        api.put(&path, json!({"target": target})).await.is(202);
    }
    // "Otherwise, ‘retired’ set to True shall not interfere with cleaning or rebuilding."
    let clean = json!({"target": "clean", "clean_steps": [{"interface": "deploy", "step": "erase_devices"}]});
    for (state, body) in
        [(ProvisionState::Manageable, clean), (ProvisionState::Active, json!({"target": "rebuild"}))]
    {
        let name = format!("free-{}", state.as_str());
        api.node_with(&name, state, |node| node.retired = true).await;
        api.put(&format!("/v1/nodes/{name}/states/provision"), body).await.is(202);
    }
}

#[tokio::test]
async fn a_reason_needs_a_retirement() {
    let api = Api::new();
    api.node("n", ProvisionState::Manageable).await;
    let reason = json!([{"op": "add", "path": "/retired_reason", "value": "old"}]);
    let says = "The retired_reason field can only be set when retired is True";
    assert_eq!(api.patch("/v1/nodes/n", reason.clone()).await.is(400).fault(), says);
    let body = json!({"driver": "fake-hardware", "retired_reason": "old"});
    assert_eq!(api.post("/v1/nodes", body).await.is(400).fault(), says);
    let body = json!({"driver": "fake-hardware", "retired": true, "retired_reason": "old"});
    assert_eq!(api.post("/v1/nodes", body).await.is(201).body["retired"], json!(true));
    api.patch("/v1/nodes/n", retire()).await.is(200);
    let shown =
        api.patch("/v1/nodes/n", json!([{"op": "remove", "path": "/retired_reason"}])).await.is(200).body;
    assert_eq!((&shown["retired"], &shown["retired_reason"]), (&json!(true), &Value::Null));
    api.patch("/v1/nodes/n", reason).await.is(200);
}
