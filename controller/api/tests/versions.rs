//! Microversions: what is negotiated, and what each gate lets pass.

use crate::common::{Api, fixture};
use axum::body::Body;
use axum::http::Request;
use model::ProvisionState;
use serde_json::{Value, json};

#[tokio::test]
async fn the_root_is_ironics_and_more() {
    let api = Api::new();
    let mut root = api.raw(Request::get("/").body(Body::empty()).unwrap()).await.is(200).body;
    assert_eq!(root.as_object_mut().unwrap().remove("anneal"), Some(json!({"extension": 1})));
    assert_eq!(root, fixture(include_str!("fixtures/root.json")));
    let v1 = api.get("/v1/").await.is(200).body;
    assert_eq!(v1["nodes"][0]["href"], "http://127.0.0.1:6385/v1/nodes/");
    assert!(api.at(21, "GET", "/v1", None).await.is(200).body.get("lookup").is_none());
}

#[tokio::test]
async fn every_answer_has_versions_and_a_request_id() {
    let api = Api::new();
    for (minor, path, status) in
        [(62, "/v1/nodes", 200), (1, "/", 200), (30, "/v1/nosuch", 404), (9, "/v1/nodes/x", 404)]
    {
        let answer = api.at(minor, "GET", path, None).await.is(status);
        assert_eq!(answer.header("x-openstack-ironic-api-minimum-version"), Some("1.1"));
        assert_eq!(answer.header("x-openstack-ironic-api-maximum-version"), Some("1.115"));
        assert_eq!(answer.header("x-openstack-ironic-api-version"), Some(format!("1.{minor}").as_str()));
        assert!(answer.header("openstack-request-id").unwrap().starts_with("req-"));
        assert_eq!(answer.header("openstack-request-id"), answer.header("x-openstack-request-id"));
    }
}

#[tokio::test]
async fn a_version_out_of_range_is_406_in_ironics_bytes() {
    let api = Api::new();
    let answer = api.at(999, "GET", "/v1/nodes", None).await.is(406);
    // As recorded in experiments.txt; the outer object as json.dumps writes it.
    let inner = r#"{\"code\": 406, \"title\": \"Not Acceptable\", \"description\": \"Version 1.999 was requested but the minor version is not supported by this service. The supported version range is: [1.1, 1.115].\"}"#;
    assert_eq!(answer.text, format!("{{\"error_message\": \"{inner}\"}}"));
    assert_eq!(answer.header("x-openstack-ironic-api-maximum-version"), Some("1.115"));
    let junk = Request::get("/v1/nodes").header("X-OpenStack-Ironic-API-Version", "junk");
    api.raw(junk.body(Body::empty()).unwrap()).await.is(406);
    let common = Request::get("/v1/nodes")
        .header("OpenStack-API-Version", "baremetal 1.90")
        .header("X-OpenStack-Ironic-API-Version", "1.5");
    let answer = api.raw(common.body(Body::empty()).unwrap()).await.is(200);
    assert_eq!(answer.header("x-openstack-ironic-api-version"), Some("1.90"));
}

/// Which field, filter, verb and argument came when stands in microversions.rs.
#[tokio::test]
async fn what_is_too_new_is_refused_in_ironics_words() {
    let api = Api::new();
    api.node("n", ProvisionState::Manageable).await;
    let detail = api.at(42, "GET", "/v1/nodes?detail=True", None).await.is(400);
    assert_eq!(detail.fault(), "Invalid query parameter ?detail=True received.");
    assert_eq!(api.at(4, "GET", "/v1/nodes/n", None).await.is(404).fault(), "Node n could not be found.");
    for (minor, query, says) in [
        (8, "provision_state=manageable", "Request not acceptable."),
        (15, "driver=x", "Request not acceptable. The minimal required API version should be 1.16"),
        (82, "parent_node=x", "Request not acceptable. The minimal required API version should be 1.83"),
        (103, "instance_name=x", "instance_name is not acceptable in this API version"),
        (49, "fields=owner", "Request not acceptable."),
    ] {
        assert_eq!(api.at(minor, "GET", &format!("/v1/nodes?{query}"), None).await.is(406).fault(), says);
    }
}

#[tokio::test]
async fn ports_show_what_their_version_knows() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Enroll).await;
    let port = api.port(&node, "52:54:00:aa:bb:01").await;
    for (field, since) in [
        ("internal_info", 18),
        ("pxe_enabled", 19),
        ("local_link_connection", 19),
        ("portgroup_uuid", 24),
        ("physical_network", 34),
        ("is_smartnic", 53),
        ("name", 88),
        ("description", 97),
        ("vendor", 100),
        ("category", 101),
        ("available_for_dynamic_portgroup", 111),
    ] {
        let path = format!("/v1/ports/{}", port.uuid);
        let old = api.at(since - 1, "GET", &path, None).await.is(200).body;
        let new = api.at(since, "GET", &path, None).await.is(200).body;
        assert_eq!((old.get(field).is_some(), new.get(field).is_some()), (false, true), "{field}");
        assert_eq!(
            api.at(since - 1, "GET", &format!("{path}?fields={field}"), None).await.status,
            406,
            "{field}"
        );
    }
}

#[tokio::test]
async fn drivers() {
    let api = Api::new();
    let list = api.get("/v1/drivers").await.is(200).body;
    let names: Vec<_> = list["drivers"].as_array().unwrap().iter().map(|driver| &driver["name"]).collect();
    assert_eq!(names, ["fake-hardware", "redfish"]);
    assert_eq!(list["drivers"][0]["hosts"], json!(["probe-conductor"]));
    let shown = api.get("/v1/drivers/redfish").await.is(200).body;
    assert_eq!(shown["type"], "dynamic");
    assert_eq!(shown["default_power_interface"], "redfish");
    assert_eq!(shown["enabled_network_interfaces"], json!(["noop"]));
    assert!(api.at(29, "GET", "/v1/drivers/redfish", None).await.is(200).body.get("type").is_none());
    let properties = api.get("/v1/drivers/redfish/properties").await.is(200).body;
    assert_eq!(keys_of(&properties), ["redfish_address"]);
    for path in ["/v1/drivers/nosuch", "/v1/drivers/nosuch/properties"] {
        let fault = api.get(path).await.is(404).fault();
        assert_eq!(fault, "Could not find the following driver(s) or hardware type(s): nosuch.");
    }
}

fn keys_of(value: &Value) -> Vec<String> {
    crate::common::keys(value)
}
