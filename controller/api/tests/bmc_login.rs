//! A change of where the password of a BMC is sent needs the password.

use crate::common::Api;
use model::{Node, ProvisionState};
use serde_json::{Value, json};

/// A node of each driver with a stored password.
fn stored(node: &mut Node) {
    let info = json!({
        "redfish_address": "https://192.0.2.1", "redfish_username": "root", "redfish_password": "fleet-wide",
        "ipmi_address": "192.0.2.1", "ipmi_password": "fleet-wide",
    });
    node.driver_info = info.as_object().unwrap().clone();
}

fn add(path: &str, value: Value) -> Value {
    json!({"op": "add", "path": path, "value": value})
}

#[tokio::test]
async fn a_bmcs_password_follows_no_patch_that_does_not_give_it() {
    let api = Api::new();
    let before = api.node_with("n", ProvisionState::Manageable, stored).await;
    let whole = json!({"redfish_address": "http://192.0.2.66", "redfish_username": "root"});
    for (key, patch) in [
        ("redfish_address", json!([add("/driver_info/redfish_address", "http://192.0.2.66".into())])),
        (
            "redfish_address",
            json!([{"op": "replace", "path": "/driver_info/redfish_address", "value": "https://192.0.2.1:8443"}]),
        ),
        ("redfish_address", json!([{"op": "remove", "path": "/driver_info/redfish_address"}])),
        ("redfish_verify_ca", json!([add("/driver_info/redfish_verify_ca", false.into())])),
        ("ipmi_address", json!([add("/driver_info/ipmi_address", "192.0.2.66".into())])),
        ("ipmi_port", json!([add("/driver_info/ipmi_port", 6230.into())])),
        // Given is what goes along to the place where it is read.
        (
            "redfish_address",
            json!([
                add("/driver_info/redfish_address", "http://192.0.2.66".into()),
                add("/extra/redfish_password", "x".into()),
                add("/driver_info/ipmi_password", "x".into())
            ]),
        ),
        (
            "redfish_verify_ca",
            json!([add("/driver", "redfish".into()), add("/driver_info/redfish_verify_ca", false.into())]),
        ),
    ] {
        let answer = api.patch("/v1/nodes/n", patch.clone()).await.is(400);
        let fault = answer.fault();
        assert!(fault.starts_with(&format!("Cannot change {key} of node n without ")), "{patch}: {fault}");
        assert!(!fault.contains("fleet-wide"), "{fault}");
    }
    assert_eq!(api.store_node(&before).await.driver_info, before.driver_info);

    for patch in [
        json!([
            add("/driver_info/redfish_address", "https://192.0.2.2".into()),
            add("/driver_info/redfish_password", "fleet-wide".into())
        ]),
        json!([
            add("/driver_info/redfish_password", "of-its-own".into()),
            add("/driver_info/redfish_verify_ca", "bmc.pem".into())
        ]),
        json!([add("/driver_info/redfish_username", "admin".into())]),
        json!([add("/driver_info/redfish_address", "https://192.0.2.2".into())]),
        // Nothing is left that could be sent.
        json!([add("/driver_info", whole)]),
        json!([add("/driver_info/redfish_address", "https://192.0.2.3".into())]),
        json!([add(
            "/driver_info",
            json!({"redfish_address": "https://192.0.2.4", "redfish_password": "x"})
        )]),
    ] {
        api.patch("/v1/nodes/n", patch).await.is(200);
    }
}
