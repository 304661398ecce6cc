//! Ports.

use crate::common::{Api, fixture, keys};
use model::ProvisionState;
use serde_json::json;

#[tokio::test]
async fn a_created_port_looks_as_ironics() {
    let api = Api::new();
    let golden = fixture(include_str!("fixtures/port.json"));
    let node = golden["node_uuid"].as_str().unwrap();
    api.node_with("n", ProvisionState::Enroll, |made| made.uuid = node.parse().unwrap()).await;
    let body = json!({"address": "52-54-00-AA-BB-01", "node_uuid": node, "uuid": golden["uuid"]});
    let answer = api.post("/v1/ports", body).await.is(201);
    let mut made = answer.body.clone();
    made["created_at"] = golden["created_at"].clone();
    assert_eq!(made, golden);
    let path = format!("/v1/ports/{}", golden["uuid"].as_str().unwrap());
    assert_eq!(answer.header("location"), Some(format!("http://127.0.0.1:6385{path}").as_str()));
    assert_eq!(api.get(&path).await.is(200).body, answer.body);
}

#[tokio::test]
async fn ports_are_listed_patched_and_deleted() {
    let api = Api::new();
    let a = api.node("a", ProvisionState::Enroll).await;
    let b = api.node("b", ProvisionState::Enroll).await;
    let port = api.port(&a, "52:54:00:aa:bb:01").await;
    api.port(&b, "52:54:00:aa:bb:02").await;
    for (path, count) in [
        ("/v1/ports", 2),
        ("/v1/ports/detail", 2),
        ("/v1/ports?node=a", 1),
        ("/v1/ports?address=52-54-00-AA-BB-02", 1),
        ("/v1/ports?node=a&address=52:54:00:aa:bb:02", 0),
        ("/v1/ports?limit=1", 1),
        ("/v1/nodes/a/ports", 1),
        ("/v1/nodes/a/ports?detail=True", 1),
        ("/v1/ports?sort_key=address&sort_dir=desc", 2),
    ] {
        let body = api.get(path).await.is(200).body;
        assert_eq!(body["ports"].as_array().unwrap().len(), count, "{path}");
    }
    let short = api.get("/v1/ports").await.body;
    assert_eq!(keys(&short["ports"][0]), ["address", "links", "uuid"]);
    let detail = api.get("/v1/ports/detail").await.body;
    assert_eq!(keys(&detail["ports"][0]), keys(&fixture(include_str!("fixtures/port.json"))));

    let path = format!("/v1/ports/{}", port.uuid);
    let patch = json!([
        {"op": "replace", "path": "/address", "value": "52:54:00:AA:BB:03"},
        {"op": "add", "path": "/extra/k", "value": 1},
        {"op": "add", "path": "/name", "value": "eth0"},
        {"op": "replace", "path": "/pxe_enabled", "value": "False"},
        {"op": "add", "path": "/local_link_connection/switch_id", "value": "s"},
        {"op": "replace", "path": "/node_uuid", "value": b.uuid},
    ]);
    let patched = api.patch(&path, patch).await.is(200).body;
    assert_eq!(patched["address"], "52:54:00:aa:bb:03");
    assert_eq!((&patched["extra"], &patched["pxe_enabled"]), (&json!({"k": 1}), &json!(false)));
    assert_eq!(patched["node_uuid"], json!(b.uuid));
    assert_eq!(api.get("/v1/ports/eth0").await.is(200).body, patched);

    for (patch, status, says) in [
        (
            json!([{"op": "replace", "path": "/address", "value": "52:54:00:aa:bb:02"}]),
            409,
            "52:54:00:aa:bb:02",
        ),
        (json!([{"op": "replace", "path": "/address", "value": "x"}]), 400, "address: x"),
        (json!([{"op": "remove", "path": "/address"}]), 400, "address"),
        (json!([{"op": "remove", "path": "/node_uuid"}]), 400, "node_uuid"),
        (json!([{"op": "replace", "path": "/uuid", "value": "x"}]), 400, "Cannot patch /uuid."),
        (json!([{"op": "add", "path": "/nosuch", "value": "x"}]), 400, "Cannot patch /nosuch."),
        (json!([{"op": "replace", "path": "/extra", "value": 5}]), 400, "extra"),
    ] {
        let answer = api.patch(&path, patch).await.is(status);
        assert!(answer.fault().contains(says), "{}", answer.fault());
        assert_eq!(api.get(&path).await.body, patched);
    }
    api.delete(&path).await.is(204);
    api.delete(&path).await.is(404);
    // The node takes its ports along.
    api.delete("/v1/nodes/b").await.is(204);
    assert_eq!(api.get("/v1/ports").await.body, json!({"ports": []}));
}
