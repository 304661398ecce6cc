//! What keeps answers out of caches, and pages of other sites from sending requests.

use crate::common::{Answer, Api};
use axum::body::Body;
use axum::http::Request;
use model::ProvisionState;

async fn send(api: &Api, (method, path): (&str, &str), types: &[&str], body: &str) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for media in types {
        request = request.header("Content-Type", *media);
    }
    api.raw(request.body(Body::from(body.to_owned())).unwrap()).await
}

#[tokio::test]
async fn no_answer_is_cached() {
    let api = Api::new();
    for (path, status) in [("/", 200), ("/v1/nodes", 200), ("/v1/nodes/none", 404), ("/nothing", 404)] {
        assert_eq!(api.get(path).await.is(status).header("cache-control"), Some("no-store"), "{path}");
    }
    let old = api.at(0, "GET", "/v1/nodes", None).await.is(406);
    assert_eq!(old.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn a_body_of_another_media_type_is_rejected_and_changes_nothing() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    let before = api.everything().await;
    let body = r#"{"driver": "fake-hardware"}"#;
    let create = ("POST", "/v1/nodes");
    for types in [
        &[][..],
        &["text/plain"],
        &["application/x-www-form-urlencoded"],
        &["multipart/form-data; boundary=x"],
        &["application/jsonx"],
        &["text/plain; application/json"],
        &["application/json", "text/plain"],
    ] {
        let answer = send(&api, create, types, body).await.is(415);
        assert_eq!(answer.fault(), "The body of this request must be of type application/json.");
    }
    // Of agents, too, and where the body is a file.
    send(&api, ("POST", "/v1/continue_inspection"), &["text/plain"], "{}").await.is(415);
    let bundle = send(&api, ("POST", "/v1/anneal/bundles"), &["application/json"], "{}").await.is(415);
    assert_eq!(bundle.fault(), "The body of this request must be of type application/octet-stream.");
    assert_eq!(api.everything().await, before);

    let path = format!("/v1/nodes/{}/maintenance", node.uuid);
    send(&api, ("PUT", &path), &[], "").await.is(202);
    send(&api, ("PUT", &path), &["text/plain"], "").await.is(202);
    send(&api, create, &["Application/JSON ; charset=utf-8"], body).await.is(201);
}
