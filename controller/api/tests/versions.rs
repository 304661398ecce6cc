//! Microversions: what is negotiated, and what each gate lets pass.

mod common;

use axum::body::Body;
use axum::http::Request;
use common::{Api, fixture};
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
async fn every_answer_tells_versions_and_a_request_id() {
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

/// Fields that cannot be written before their version: each is refused one version below, and taken at it.
#[tokio::test]
async fn newer_fields_are_refused_and_taken() {
    let fields = [
        ("name", 5, json!("x")),
        ("network_interface", 20, json!("noop")),
        ("resource_class", 21, json!("x")),
        ("boot_interface", 31, json!("fake")),
        ("power_interface", 31, json!("fake")),
        ("storage_interface", 33, json!("noop")),
        ("rescue_interface", 38, json!("fake")),
        ("bios_interface", 40, json!("fake")),
        ("conductor_group", 46, json!("east")),
        ("automated_clean", 47, json!(false)),
        ("owner", 50, json!("me")),
        ("description", 51, json!("x")),
        ("retired", 61, json!(true)),
        ("lessee", 65, json!("me")),
        ("network_data", 66, json!({})),
        ("shard", 82, json!("s")),
        ("parent_node", 83, json!("p")),
        ("firmware_interface", 86, json!("fake")),
        ("disable_power_off", 95, json!(true)),
        ("instance_name", 104, json!("i")),
    ];
    for (field, since, value) in fields {
        let api = Api::new();
        let node = api.node("n", ProvisionState::Manageable).await;
        let before = api.everything().await;
        let path = format!("/v1/nodes/{}", node.uuid);
        let patch = json!([{"op": "add", "path": format!("/{field}"), "value": value}]);
        let create = json!({"driver": "fake-hardware", field: value});
        let old = since - 1;
        assert_eq!(api.at(old, "PATCH", &path, Some(patch.clone())).await.status, 406, "{field}");
        assert_eq!(api.at(old, "POST", "/v1/nodes", Some(create.clone())).await.status, 406, "{field}");
        if since > 8 {
            assert_eq!(
                api.at(old, "GET", &format!("{path}?fields={field}"), None).await.status,
                406,
                "{field}"
            );
        }
        assert_eq!(api.everything().await, before, "{field}");
        let patched = api.at(since, "PATCH", &path, Some(patch)).await.is(200);
        assert_eq!(patched.body[field], value, "{field}");
        // The name is taken by now.
        let create = if field == "name" { json!({"driver": "fake-hardware", "name": "y"}) } else { create };
        api.at(since, "POST", "/v1/nodes", Some(create)).await.is(201);
    }
}

#[tokio::test]
async fn newer_verbs_are_refused() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    let path = format!("/v1/nodes/{}/states/provision", node.uuid);
    let before = api.everything().await;
    for (verb, since) in [
        ("manage", 4),
        ("provide", 4),
        ("inspect", 6),
        ("abort", 13),
        ("clean", 15),
        ("adopt", 17),
        ("rescue", 38),
        ("unrescue", 38),
        ("deploy", 73),
        ("undeploy", 73),
        ("unhold", 85),
        ("service", 87),
    ] {
        let body = || Some(json!({"target": verb}));
        assert_eq!(api.at(since - 1, "PUT", &path, body()).await.status, 406, "{verb}");
        // At its version the verb is known; from this state, or without its steps, it is refused.
        if !["provide", "inspect", "adopt"].contains(&verb) {
            assert_eq!(api.at(since, "PUT", &path, body()).await.status, 400, "{verb}");
        }
    }
    assert_eq!(api.everything().await, before);
    api.at(4, "PUT", &path, Some(json!({"target": "provide"}))).await.is(202);
}

#[tokio::test]
async fn newer_filters_and_arguments_are_refused() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    for (query, since) in [
        ("provision_state=enroll", 9),
        ("driver=x", 16),
        ("resource_class=x", 21),
        ("fault=power%20failure", 42),
        ("conductor_group=x", 46),
        ("conductor=x", 49),
        ("owner=x", 50),
        ("lessee=x", 65),
        ("shard=x", 82),
        ("parent_node=x", 83),
        ("instance_name=x", 104),
        ("fields=uuid", 8),
    ] {
        let path = format!("/v1/nodes?{query}");
        assert_eq!(api.at(since - 1, "GET", &path, None).await.status, 406, "{query}");
        assert_eq!(api.at(since, "GET", &path, None).await.status, 200, "{query}");
    }
    let detail = api.at(42, "GET", "/v1/nodes?detail=True", None).await.is(400);
    assert_eq!(detail.fault(), "Invalid query parameter ?detail=True received.");
    let path = format!("/v1/nodes/{}/states/power", node.uuid);
    let before = api.everything().await;
    for body in [json!({"target": "soft power off"}), json!({"target": "power on", "timeout": 5})] {
        api.at(26, "PUT", &path, Some(body)).await.is(406);
    }
    assert_eq!(api.everything().await, before);
    api.at(27, "PUT", &path, Some(json!({"target": "soft power off"}))).await.is(202);
    assert_eq!(api.at(4, "GET", "/v1/nodes/n", None).await.is(404).fault(), "Node n could not be found.");
    api.at(5, "GET", "/v1/nodes/n", None).await.is(200);
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
    common::keys(value)
}
