//! Deployments that await the hello of their instance: refused where it cannot come, before anything changes.

use crate::common::Api;
use api::Settings;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use model::hello::WAIT_FOR_HELLO;
use model::{Node, ProvisionState};
use serde_json::{Value, json};
use std::io::Write;

fn settings(hello_url: &str) -> Settings {
    Settings { hello_url: hello_url.to_owned(), require_agent_tls: false, ..Settings::default() }
}

/// An available node that is to be deployed with a hello.
async fn node(api: &Api, driver: &'static str, wait: Value) -> Node {
    let set = |node: &mut Node| {
        node.driver = driver.to_owned();
        let info = json!({"image_source": "http://images/x.raw", "image_checksum": "0".repeat(64), WAIT_FOR_HELLO: wait});
        node.instance_info = info.as_object().unwrap().clone();
    };
    api.node_with("n", ProvisionState::Available, set).await
}

/// The request is refused with this text, and nothing has changed; so it is at `validate`, if the drive does not come with the
/// request.
async fn refused(api: &Api, drive: Option<Value>, says: &str) {
    let before = api.everything().await;
    let mut body = json!({"target": "active"});
    if let Some(drive) = &drive {
        body["configdrive"] = drive.clone();
    }
    let fault = api.put("/v1/nodes/n/states/provision", body).await.is(400).fault();
    assert!(fault.contains(says) && fault.contains(WAIT_FOR_HELLO) && !fault.contains("hunter2"), "{fault}");
    if drive.is_none() {
        let seen = api.get("/v1/nodes/n/validate").await.is(200).body["deploy"].clone();
        assert!(seen["result"] == false && seen["reason"].as_str().unwrap().contains(says), "{seen}");
    }
    assert_eq!(api.everything().await, before);
}

#[tokio::test]
async fn a_hello_that_cannot_come_is_refused_by_name_before_anything_changes() {
    let api = Api::with(settings("http://192.0.2.1:8089"));
    let kept = node(&api, "redfish", json!(60)).await;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&[0; 4096]).unwrap();
    let iso = json!(STANDARD.encode(gzip.finish().unwrap()));
    for (drive, says) in [
        (iso.clone(), "ready-made ISO image"),
        (json!("https://hunter2@drives/x"), "is a URL"),
        (json!({"user_data": "#cloud-config\nphone_home: {url: hunter2}"}), "phone_home of its own"),
        (json!({"user_data": "#cloud-config\nvendor_data: {enabled: false}"}), "becomes of vendor data"),
    ] {
        refused(&api, Some(drive), says).await;
    }
    // A stored one is judged, too.
    let mut patched = api.store_node(&kept).await;
    patched.instance_info.insert("configdrive".into(), iso);
    api.update(patched).await;
    refused(&api, None, "ready-made ISO image").await;
    let mut patched = api.store_node(&kept).await;
    patched.instance_info.remove("configdrive");
    patched.instance_info.insert(WAIT_FOR_HELLO.into(), json!("soon"));
    api.update(patched).await;
    refused(&api, None, "number of seconds").await;

    let nowhere = Api::with(settings(""));
    node(&nowhere, "redfish", json!(true)).await;
    refused(&nowhere, None, "[boot] enabled").await;
    let fake = Api::with(settings("http://192.0.2.1:8089"));
    node(&fake, "fake-hardware", json!(true)).await;
    refused(&fake, None, "deploy interface direct").await;
}

#[tokio::test]
async fn a_deployment_with_a_hello_gets_a_nonce_that_no_answer_shows() {
    let api = Api::with(settings("http://192.0.2.1:8089"));
    let kept = node(&api, "redfish", json!("60")).await;
    assert_eq!(api.get("/v1/nodes/n/validate").await.is(200).body["deploy"]["result"], true);
    let body = json!({"target": "active", "configdrive": {"user_data": "#!/bin/sh"}});
    api.put("/v1/nodes/n/states/provision", body).await.is(202);
    let hello = api.store_node(&kept).await.run.unwrap().hello.unwrap();
    assert_eq!(hello.limit_s, 60);
    let nonce = hello.nonce.expose();
    for path in ["/v1/nodes/n", "/v1/nodes/n/states", "/v1/nodes/detail", "/v1/nodes/n/history?detail=true"] {
        let seen = api.get(path).await.is(200).body.to_string();
        assert!(!seen.contains(nonce) && !seen.contains("secret_nonce"), "{path}: {seen}");
    }
}
