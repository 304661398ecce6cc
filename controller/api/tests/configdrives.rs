//! Configuration drives: kept, masked, and refused where no agent could write them.

use crate::common::Api;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use model::{Node, ProvisionState};
use serde_json::{Value, json};
use std::io::Write;

/// A redfish node with an image that can be written.
async fn with_image(api: &Api, state: ProvisionState) -> Node {
    let set = |node: &mut Node| {
        node.driver = "redfish".into();
        let info = json!({"image_source": "http://images/x.raw", "image_checksum": "0".repeat(64)});
        node.instance_info = info.as_object().unwrap().clone();
    };
    api.node_with("n", state, set).await
}

/// As after a deployment.
async fn in_use(api: &Api, node: &Node) {
    let mut node = api.store_node(node).await;
    room::put(&mut node, ProvisionState::Active, model::Timestamp(0));
    api.update(node).await;
}

#[tokio::test]
async fn a_configdrive_is_kept_as_it_was_given_and_never_shown() {
    let api = Api::new();
    let node = with_image(&api, ProvisionState::Available).await;
    let stored = async || api.store_node(&node).await.instance_info.get("configdrive").cloned();
    let ask = async |target: &str, drive: Value| {
        let body = json!({"target": target, "configdrive": drive});
        api.put("/v1/nodes/n/states/provision", body).await.is(202);
    };
    let first = json!({"meta_data": {"hostname": "h"}, "user_data": "hunter2", "vendor_data": {"v": 1}});
    ask("active", first.clone()).await;
    assert_eq!(stored().await, Some(first.clone()));
    for path in ["/v1/nodes/n", "/v1/nodes/n/states", "/v1/nodes/detail", "/v1/nodes/n/history?detail=true"] {
        let seen = api.get(path).await.is(200);
        let seen = seen.body.to_string();
        assert!(!seen.contains("hunter2") && !seen.contains("hostname"), "{path}: {seen}");
    }
    let shown = api.get("/v1/nodes/n").await.is(200);
    assert_eq!(shown.body["instance_info"]["configdrive"], "******");

    in_use(&api, &node).await;
    api.put("/v1/nodes/n/states/provision", json!({"target": "rebuild"})).await.is(202);
    assert_eq!(stored().await, Some(first), "a rebuild writes it again");
    in_use(&api, &node).await;
    let second = json!({"user_data": ["other"]});
    ask("rebuild", second.clone()).await;
    assert_eq!(stored().await, Some(second), "another one takes its place");
}

#[tokio::test]
async fn a_configdrive_that_no_agent_could_write_is_refused_with_the_request() {
    let api = Api::new();
    let node = with_image(&api, ProvisionState::Available).await;
    let before = api.everything().await;
    // Gzip may have several parts: 65 of one MiB.
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&vec![0; 1 << 20]).unwrap();
    let bomb = STANDARD.encode(gzip.finish().unwrap().repeat(65));
    for (drive, says) in
        [(json!(bomb), "more than 64 MiB"), (json!("hunter2"), "not base64"), (json!("H4sI"), "not gzip")]
    {
        let body = json!({"target": "active", "configdrive": drive});
        let fault = api.put("/v1/nodes/n/states/provision", body).await.is(400).fault();
        assert!(fault.contains("Invalid configdrive format") && fault.contains(says), "{fault}");
        assert!(!fault.contains("hunter2"), "{fault}");
        assert_eq!(api.everything().await, before);
    }
    // One that was stored by a patch is judged, too.
    let mut patched = api.store_node(&node).await;
    patched.instance_info.insert("configdrive".into(), json!({"meta_data": "hunter2"}));
    api.update(patched).await;
    let fault = api.put("/v1/nodes/n/states/provision", json!({"target": "active"})).await.is(400).fault();
    assert!(fault.ends_with("Invalid configdrive format: meta_data is of the wrong type"), "{fault}");
    let seen = api.get("/v1/nodes/n/validate").await.is(200).body["deploy"].clone();
    assert_eq!(seen["result"], false, "{seen}");
}
