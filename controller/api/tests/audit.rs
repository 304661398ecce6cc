//! The sender of a request: in events, runs and the history, and in one line of the log for each change.

use crate::common::{Answer, Api};
use crate::rights::callers::{basic, hash};
use api::auth::Users;
use api::{Auth, ClientAddress};
use axum::body::Body;
use axum::http::Request;
use model::{ProvisionState, RequestSender};
use room::Log;
use serde_json::{Value, json};
use std::sync::Arc;

const CLIENT: &str = "192.0.2.9";

/// An API with an administrator and a member of a project.
fn api() -> (Api, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let hash = hash("right");
    std::fs::write(dir.path().join("htpasswd"), format!("alice:{hash}\nbob:{hash}\n")).unwrap();
    std::fs::write(dir.path().join("roles"), "alice: admin\nbob: member p1\n").unwrap();
    let users = Users::open(dir.path().join("htpasswd"), Some(dir.path().join("roles"))).unwrap();
    (Api::guarded(Auth::Basic(Arc::new(users))), dir)
}

async fn ask(api: &Api, user: &str, method: &str, path: &str, body: Value) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("X-OpenStack-Ironic-API-Version", "1.115")
        .header("Content-Type", "application/json")
        .header("Authorization", basic(user, "right"))
        .extension(ClientAddress(CLIENT.parse().unwrap()));
    api.raw(request.body(Body::from(body.to_string())).unwrap()).await
}

#[tokio::test]
async fn who_asked_stands_in_the_run_the_events_and_the_history() {
    let (api, _files) = api();
    let owned = |node: &mut model::Node| drop(node.other.insert("owner".into(), "p1".into()));
    let node = api.node_with("n", ProvisionState::Manageable, owned).await;
    let set = json!([{"op": "add", "path": "/maintenance", "value": true}]);
    let patched = ask(&api, "alice", "PATCH", "/v1/nodes/n", set).await.is(200);
    let verb = json!({"target": "clean", "clean_steps": [{"interface": "deploy", "step": "erase_devices"}]});
    let cleaned = ask(&api, "bob", "PUT", "/v1/nodes/n/states/provision", verb).await.is(202);
    let who = |user: &str, project: Option<&str>| RequestSender {
        user: Some(user.into()),
        project: project.map(str::to_owned),
        address: Some(CLIENT.into()),
    };
    let events = api.store.history(node.uuid).await.unwrap();
    let senders: Vec<_> = events.iter().map(|event| event.sender.clone()).collect();
    assert_eq!(senders, [Some(who("alice", None)), Some(who("bob", Some("p1")))]);
    assert_eq!(api.store_node(&node).await.run.unwrap().sender, Some(who("bob", Some("p1"))));

    let list = ask(&api, "bob", "GET", "/v1/nodes/n/history?detail=True", Value::Null).await.is(200).body;
    let ids = [&patched, &cleaned].map(|answer| answer.header("openstack-request-id").unwrap());
    for (event, (user, project, id)) in list["history"]
        .as_array()
        .unwrap()
        .iter()
        .zip([("alice", Value::Null, ids[0]), ("bob", "p1".into(), ids[1])])
    {
        assert_eq!((&event["user"], &event["project"]), (&json!(user), &project));
        assert_eq!(event["anneal"], json!({"address": CLIENT, "request_id": id}));
    }
}

#[tokio::test]
async fn each_change_is_one_line_of_the_audit_log() {
    let ((api, _files), log) = (api(), Log::default());
    let _collecting = log.collect();
    let all = || -> Vec<Value> { log.lines().into_iter().filter(|line| line["target"] == "audit").collect() };
    // tracing may overlook this subscriber for a place in the code that another test registers at the same moment. So the
    // first line is asked for until it comes, a hundred times at most.
    for _ in 0..100 {
        tracing::callsite::rebuild_interest_cache();
        ask(&api, "alice", "POST", "/v1/chassis", json!({})).await.is(201);
        if !all().is_empty() {
            break;
        }
    }
    assert_ne!(all(), Vec::<Value>::new(), "no change was logged");
    let before = all().len();
    let lines = || all().split_off(before);
    let owned = |node: &mut model::Node| drop(node.other.insert("owner".into(), "p1".into()));
    api.node_with("n", ProvisionState::Manageable, owned).await;
    ask(&api, "alice", "GET", "/v1/nodes/n", Value::Null).await.is(200);
    assert_eq!(lines(), Vec::<Value>::new(), "reading is not logged");
    let patch = json!([{"op": "add", "path": "/driver_info/redfish_password", "value": "hunter2"}]);
    let answers = [
        ("alice", "PATCH", "/v1/nodes/n", patch, 200, "\"add /driver_info/redfish_password\""),
        (
            "bob",
            "PUT",
            "/v1/nodes/n/states/provision",
            json!({"target": "provide"}),
            202,
            "\"target=provide\"",
        ),
        (
            "bob",
            "PUT",
            "/v1/nodes/n/states/provision",
            json!({"target": "inspect"}),
            400,
            "\"target=inspect\"",
        ),
        ("alice", "POST", "/v1/chassis", json!({"description": "hunter2"}), 201, "\"description\""),
    ];
    for (count, (user, method, path, body, status, asked)) in answers.into_iter().enumerate() {
        let answer = ask(&api, user, method, path, body).await.is(status);
        let lines = lines();
        assert_eq!(lines.len(), count + 1, "{lines:#?}");
        let id = answer.header("openstack-request-id").unwrap();
        let mut fields = json!({"message": format!("{method} {path}"), "user": user, "address": CLIENT,
            "request_id": id, "status": status, "asked": asked});
        if user == "bob" {
            fields["project"] = "p1".into();
        }
        assert_eq!(lines[count]["fields"], fields);
        assert_eq!(lines[count]["level"], "INFO");
    }
    assert!(!log.lines().iter().any(|line| line.to_string().contains("hunter2")));
}
