//! Bad input: Ironic's status, a message that names the thing, and nothing changed. Texts are Ironic's where
//! the recordings have them.

mod nodes;
mod patch;
mod ports;
mod recorded;
mod states;

use crate::common::Api;
use axum::body::Body;
use axum::http::Request;
use model::{Node, ProvisionState, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

/// A request, and what it must be answered.
pub struct Case {
    method: &'static str,
    path: &'static str,
    body: Value,
    status: u16,
    says: String,
}

/// `says` is a part of the message.
pub fn case(method: &'static str, path: &'static str, body: Value, status: u16, says: &str) -> Case {
    Case { method, path, body, status, says: says.to_owned() }
}

/// A GET.
pub fn get(path: &'static str, status: u16, says: &str) -> Case {
    case("GET", path, Value::Null, status, says)
}

/// An object with `more` fields, or other values of its own.
pub fn with(mut object: Value, more: Value) -> Value {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

async fn house() -> Api {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    api.port(&node, "52:54:00:aa:bb:01").await;
    api.node("other", ProvisionState::Enroll).await;
    api.node("available", ProvisionState::Available).await;
    api.node("cleaning", ProvisionState::Cleaning).await;
    api.node_with("retired", ProvisionState::Manageable, |node| node.retired = true).await;
    api
}

#[tokio::test]
async fn each_gets_its_status_and_names_the_thing() {
    let api = house().await;
    let before = api.everything().await;
    let cases = [
        nodes::reading(),
        nodes::creating(),
        patch::cases(),
        states::verbs(),
        states::others(),
        ports::cases(),
    ];
    for Case { method, path, body, status, says } in cases.into_iter().flatten() {
        let body = Some(body).filter(|body| !body.is_null());
        let answer = api.at(115, method, path, body.clone()).await;
        let context = format!("{method} {path} {body:?}: {} {}", answer.status, answer.text);
        assert_eq!(answer.status, status, "{context}");
        assert!(answer.fault().contains(&says), "{context}\nshould say {says}");
        assert_eq!(api.everything().await, before, "{context}\nchanged something");
    }
}

#[tokio::test]
async fn malformed_json_is_400_everywhere() {
    let api = house().await;
    let before = api.everything().await;
    let deep = "[".repeat(100_000);
    for (method, path) in [
        ("POST", "/v1/nodes"),
        ("PATCH", "/v1/nodes/n"),
        ("PUT", "/v1/nodes/n/states/provision"),
        ("PUT", "/v1/nodes/n/states/power"),
        ("PUT", "/v1/nodes/n/maintenance"),
        ("PUT", "/v1/nodes/n/management/boot_device"),
        ("PUT", "/v1/nodes/n/management/inject_nmi"),
        ("PUT", "/v1/nodes/n/management/indicators/led@system"),
        ("PUT", "/v1/nodes/n/states/raid"),
        ("PUT", "/v1/nodes/n/states/console"),
        ("PUT", "/v1/nodes/n/states/boot_mode"),
        ("PUT", "/v1/nodes/n/states/secure_boot"),
        ("POST", "/v1/nodes/n/vifs"),
        ("POST", "/v1/nodes/n/vmedia"),
        ("POST", "/v1/ports"),
        ("POST", "/v1/heartbeat/n"),
        ("PUT", "/v1/nodes/n/traits"),
        ("POST", "/v1/deploy_templates"),
        ("PATCH", "/v1/deploy_templates/x"),
        ("POST", "/v1/continue_inspection"),
    ] {
        for body in [b"{".to_vec(), b"nonsense".to_vec(), vec![0xff, 0xfe], deep.clone().into_bytes()] {
            for kind in ["application/json", "application/json; charset=utf-8"] {
                let request = Request::builder()
                    .method(method)
                    .uri(path)
                    .header("X-OpenStack-Ironic-API-Version", "1.115")
                    .header("Content-Type", kind)
                    .body(Body::from(body.clone()))
                    .unwrap();
                let answer = api.raw(request).await.is(400);
                assert!(answer.fault().contains("JSON"), "{method} {path}: {}", answer.fault());
            }
        }
        let huge = Request::builder().method(method).uri(path).header("Content-Type", "application/json");
        let huge = huge.body(Body::from(vec![b' '; 9 << 20])).unwrap();
        api.raw(huge).await.is(413).fault();
    }
    assert_eq!(api.everything().await, before);
}

/// Agents and strangers may send 256 KiB; users, whom the guard knows before the body is read, may send 2 MiB.
#[tokio::test]
async fn a_body_of_an_unknown_sender_is_small() {
    let api = house().await;
    let send = async |path: &str, kib: usize| {
        let body = Body::from(vec![b' '; kib << 10]);
        let request = Request::post(path).header("content-type", "application/json");
        api.raw(request.body(body).unwrap()).await.status
    };
    assert_eq!((send("/v1/heartbeat/n", 257).await, send("/v1/heartbeat/n", 255).await), (413, 400));
    assert_eq!((send("/v1/nodes", 2049).await, send("/v1/nodes", 2047).await), (413, 400));
}

#[tokio::test]
async fn unknown_paths_and_methods() {
    let api = house().await;
    let answer = api.get("/v1/nosuch").await.is(404);
    assert_eq!(
        answer.text,
        r#"{"error_message": "{\"code\": 404, \"title\": \"Not Found\", \"description\": \"\"}"}"#
    );
    let answer = api.put("/v1/nodes", json!({})).await.is(405);
    assert_eq!(
        answer.text,
        r#"{"error_message": "{\"code\": 405, \"title\": \"Method Not Allowed\", \"description\": \"\"}"}"#
    );
    for (method, path, status) in [
        ("GET", "/v1/heartbeat", 405),
        ("GET", "/v1/heartbeat/n", 405),
        ("POST", "/v1/lookup", 405),
        ("DELETE", "/v1/nodes", 405),
        ("GET", "/v1/nodes/n/nosuch", 404),
        ("GET", "/v1/nodes/n/portgroups/nosuch", 404),
        ("GET", "/v2/nodes", 404),
        ("GET", "/v1/nodes/%ff", 400),
        ("GET", "/v1/nodes?name=%ff", 400),
    ] {
        let answer = api.at(115, method, path, None).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text);
        answer.fault();
    }
}

/// States in which a patch is allowed, and those in which it is not, by 01-state-machine.md.
#[tokio::test]
async fn patches_wait_for_transitions() {
    use ProvisionState as P;
    let allowed = [
        P::Enroll,
        P::Manageable,
        P::Available,
        P::Active,
        P::Error,
        P::Rescue,
        P::AdoptFail,
        P::CleanFail,
        P::DeployFail,
        P::InspectFail,
        P::InspectWait,
        P::RescueFail,
        P::ServiceFail,
        P::ServiceHold,
        P::UnrescueFail,
        P::Verifying,
    ];
    for state in P::ALL {
        let api = Api::new();
        api.node("n", state).await;
        let answer = api.patch("/v1/nodes/n", json!([{"op": "add", "path": "/extra/a", "value": 1}])).await;
        assert_eq!(answer.status, if allowed.contains(&state) { 200 } else { 409 }, "{state:?}");
    }
    let api = Api::new();
    api.node_with("n", P::CleanWait, |node| {
        node.maintenance = true;
        node.instance_uuid = Some(Uuid::from_u128(1));
    })
    .await;
    api.patch("/v1/nodes/n", json!([{"op": "remove", "path": "/instance_uuid"}])).await.is(200);
}

#[tokio::test]
async fn what_follows_from_a_patch() {
    let api = Api::new();
    let node = api
        .node_with("n", ProvisionState::Active, |node: &mut Node| {
            node.maintenance = true;
            node.maintenance_reason = Some("m".into());
            node.fault = Some("power failure".into());
            node.resource_class = Some("big".into());
            node.instance_uuid = Some(Uuid::from_u128(1));
        })
        .await;
    let set = |path: &str, value: Value| json!([{"op": "replace", "path": path, "value": value}]);
    let shown = api.patch("/v1/nodes/n", set("/maintenance", json!("False"))).await.is(200).body;
    assert_eq!(shown["maintenance"], json!(false));
    assert_eq!((&shown["maintenance_reason"], &shown["fault"]), (&Value::Null, &Value::Null));

    let retire = json!([
        {"op": "add", "path": "/retired", "value": "True"},
        {"op": "add", "path": "/retired_reason", "value": "old"},
    ]);
    let shown = api.patch("/v1/nodes/n", retire).await.is(200).body;
    assert_eq!((&shown["retired"], &shown["retired_reason"]), (&json!(true), &json!("old")));
    let shown = api.patch("/v1/nodes/n", json!([{"op": "remove", "path": "/retired"}])).await.is(200).body;
    assert_eq!((&shown["retired"], &shown["retired_reason"]), (&json!(false), &Value::Null));

    let fault = api.patch("/v1/nodes/n", set("/resource_class", json!("small"))).await.is(409).fault();
    assert!(fault.contains("can not have resource_class updated"), "{fault}");
    let fault = api.patch("/v1/nodes/n", set("/boot_interface", json!("fake"))).await.is(409).fault();
    assert!(fault.contains("can not have boot_interface updated"), "{fault}");
    let other = Uuid::from_u128(2).to_string();
    let fault = api.patch("/v1/nodes/n", set("/instance_uuid", json!(other))).await.is(409).fault();
    assert_eq!(fault, format!("Node {} is associated with instance {}.", node.uuid, Uuid::from_u128(1)));
    api.patch("/v1/nodes/n", set("/protected", json!(true))).await.is(200);
    let fault = api.delete("/v1/nodes/n").await.is(409).fault();
    assert!(fault.contains("is associated with instance"));
    api.patch("/v1/nodes/n", json!([{"op": "remove", "path": "/instance_uuid"}])).await.is(200);
    assert!(api.delete("/v1/nodes/n").await.is(403).fault().contains("is protected"));
}

#[tokio::test]
async fn a_verb_on_a_locked_node_is_409() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Cleaning).await;
    api.store.take_lease(node.uuid, "host", Timestamp(0), Timestamp(i64::MAX)).await.unwrap().unwrap();
    let path = "/v1/nodes/n/states/provision";
    let fault = api.put(path, json!({"target": "abort"})).await.is(409).fault();
    assert!(fault.contains("is locked by host host"), "{fault}");
}
