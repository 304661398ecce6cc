//! The disks that a node must have, and a disk that left it.

use crate::common::Api;
use model::disks::KnownDisk;
use model::{ProvisionState, Timestamp};
use serde_json::json;

const DISKS: &str = "/v1/anneal/nodes/n/disks";
const RETIRE: &str = "/v1/anneal/nodes/n/disks/retire";

async fn node_with_disks(api: &Api) -> model::Node {
    api.node_with("n", ProvisionState::CleanFail, |node| {
        let disk =
            |serial: &str| KnownDisk { serial: Some(serial.into()), wwn: Some("0x5".into()), model: None };
        node.disks.known = vec![disk("S1"), KnownDisk { wwn: None, ..disk("S2") }];
    })
    .await
}

#[tokio::test]
async fn a_disk_that_left_is_retired_with_a_reason_and_in_the_history() {
    let api = Api::new();
    let node = node_with_disks(&api).await;
    let listed = api.get(DISKS).await.is(200).body;
    let (first, second) = (
        json!({"serial": "S1", "wwn": "0x5", "model": null}),
        json!({"serial": "S2", "wwn": null, "model": null}),
    );
    assert_eq!(listed, json!({"known": [first, second], "retired": []}));
    let seen = api.post(RETIRE, json!({"disk": "S1", "reason": "returned to the vendor"})).await.is(200).body;
    assert_eq!((&seen["known"], &seen["retired"][0]["serial"]), (&json!([second]), &json!("S1")));
    assert_eq!(seen["retired"][0]["reason"], "returned to the vendor");
    assert_eq!(api.get(DISKS).await.is(200).body, seen);
    let stored = api.store.node(node.uuid).await.unwrap();
    assert_eq!((stored.disks.known.len(), stored.disks.retired.len()), (1, 1));
    let history = api.get("/v1/nodes/n/history?detail=True").await.is(200).body;
    let texts: Vec<_> = history["history"].as_array().unwrap().iter().map(|event| &event["event"]).collect();
    assert!(texts.contains(&&json!("disk S1 was retired: returned to the vendor")), "{texts:?}");
}

#[tokio::test]
async fn what_is_not_known_or_not_explained_is_not_retired() {
    let api = Api::new();
    let node = node_with_disks(&api).await;
    let before = api.store.node(node.uuid).await.unwrap();
    let long = "x".repeat(256);
    for (body, status) in [
        (json!({"disk": "S9", "reason": "gone"}), 404),
        (json!({"disk": "S1"}), 400),
        (json!({"disk": "S1", "reason": " "}), 400),
        (json!({"disk": "S1", "reason": long}), 400),
        (json!({"disk": "S1", "reason": 1}), 400),
        (json!({"reason": "gone"}), 400),
        (json!({"disk": "S1", "reason": "gone", "force": true}), 400),
    ] {
        api.post(RETIRE, body.clone()).await.is(status);
        assert_eq!(api.store.node(node.uuid).await.unwrap(), before, "{body}");
    }
    let expected = json!([{"op": "add", "path": "/properties/expected_disks", "value": ["S1"]}]);
    api.at(115, "PATCH", "/v1/nodes/n", Some(expected)).await.is(200);
    let fault = api.post(RETIRE, json!({"disk": "S1", "reason": "gone"})).await.is(409).fault();
    assert!(fault.contains("expected_disks"), "{fault}");
    let until = Timestamp(i64::MAX);
    let _lease = api.store.take_lease(node.uuid, "host", Timestamp(0), until).await.unwrap().unwrap();
    let fault = api.post(RETIRE, json!({"disk": "S2", "reason": "gone"})).await.is(409).fault();
    assert!(fault.contains("is locked by host host"), "{fault}");
}
