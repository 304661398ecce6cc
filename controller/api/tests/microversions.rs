//! Nodes, microversion by microversion: every field, filter, verb and argument is absent or refused, as Ironic refuses
//! it, one version before it came, and there at its version. What is refused changes nothing.
//!
//! `fixtures/ironic_fields.json` is what the real Ironic says of its fields (`fixtures/fields.py` reads it out).

use crate::common::{Api, fixture, keys};
use axum::body::Body;
use axum::http::Request;
use model::{Node, ProvisionState};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

const NODE: &str = "/v1/nodes/n";

fn ironic() -> Value {
    fixture(include_str!("fixtures/ironic_fields.json"))
}

fn versioned() -> BTreeMap<String, u16> {
    serde_json::from_value(ironic()["versioned"].clone()).unwrap()
}

fn names(list: &str) -> Vec<String> {
    serde_json::from_value(ironic()[list].clone()).unwrap()
}

/// A value that a client may write there.
fn value(field: &str, parent: Uuid) -> Value {
    match field {
        "automated_clean" | "disable_power_off" | "retired" => json!(true),
        "protected" => json!(false),
        "protected_reason" | "retired_reason" => json!(""),
        "network_data" => json!({}),
        "network_interface" | "storage_interface" => json!("noop"),
        "parent_node" => json!(parent),
        interface if interface.ends_with("_interface") => json!("fake"),
        _ => json!("x"),
    }
}

#[tokio::test]
async fn fields_are_shown_sorted_by_and_written_since_their_version() {
    let patchable = names("patchable");
    for (field, since) in versioned() {
        let api = Api::new();
        api.node("n", ProvisionState::Manageable).await;
        let parent = api.node("parent", ProvisionState::Enroll).await.uuid;
        // Names in paths are for 1.5 and later.
        let node = api.get(NODE).await.body["uuid"].as_str().unwrap().to_owned();
        let path = format!("/v1/nodes/{node}");
        let before = api.everything().await;
        let (old, new) = (since - 1, since);
        for (minor, there) in [(old, false), (new, true)] {
            let shown = api.at(minor, "GET", &path, None).await.is(200).body;
            assert_eq!(shown.get(&field).is_some(), there, "{field} at 1.{minor}");
            let list = api.at(minor, "GET", "/v1/nodes/detail", None).await.is(200).body;
            assert_eq!(list["nodes"][0].get(&field).is_some(), there, "{field} in lists at 1.{minor}");
        }
        let unsortable = names("unsortable").contains(&field)
            || ["conductor", "allocation_uuid"].contains(&field.as_str());
        let sorted = format!("/v1/nodes?sort_key={field}");
        assert_eq!(api.at(old, "GET", &sorted, None).await.status, 406, "sort by {field}");
        let expected = if unsortable { 400 } else { 200 };
        assert_eq!(api.at(new, "GET", &sorted, None).await.status, expected, "sort by {field}");
        if since > 8 {
            for path in [format!("{path}?fields={field}"), format!("/v1/nodes?fields={field}")] {
                assert_eq!(api.at(old, "GET", &path, None).await.status, 406, "{path}");
                let shown = api.at(new, "GET", &path, None).await.is(200).body;
                let shown = shown["nodes"].get(0).unwrap_or(&shown);
                assert_eq!(keys(shown), {
                    let mut both = vec![field.clone(), "links".into()];
                    both.sort();
                    both
                });
            }
        }
        let patch = json!([{"op": "add", "path": format!("/{field}"), "value": value(&field, parent)}]);
        let answer = api.at(old, "PATCH", &path, Some(patch.clone())).await;
        if patchable.contains(&field) {
            assert_eq!(answer.status, 406, "PATCH {field}: {}", answer.text);
            assert_eq!(api.everything().await, before, "{field}");
            api.at(new, "PATCH", &path, Some(patch)).await.is(200);
        } else {
            assert_eq!(answer.status, 400, "PATCH {field}");
            let fault = api.at(new, "PATCH", &path, Some(patch)).await.is(400).fault();
            assert!(fault.starts_with(&format!("Cannot patch /{field}.")), "{fault}");
        }
        if patchable.contains(&field) && !field.starts_with("protected") {
            let node = json!({"driver": "fake-hardware", field.clone(): value(&field, parent)});
            // An empty reason counts as none, which any version may give.
            if field != "retired_reason" {
                assert_eq!(
                    api.at(old, "POST", "/v1/nodes", Some(node.clone())).await.status,
                    406,
                    "POST {field}"
                );
            }
            let node = if field == "name" { json!({"driver": "fake-hardware", "name": "y"}) } else { node };
            api.at(new, "POST", "/v1/nodes", Some(node)).await.is(201);
        }
    }
}

#[tokio::test]
async fn patch_takes_the_fields_that_ironics_takes() {
    let api = Api::new();
    api.node("n", ProvisionState::Manageable).await;
    let fault =
        api.patch(NODE, json!([{"op": "add", "path": "/nonsense", "value": 1}])).await.is(400).fault();
    let listed = fault.split_once("Only the following can be updated: ").unwrap().1;
    let mut listed: Vec<_> = listed.split(", ").map(str::to_owned).collect();
    listed.sort();
    assert_eq!(listed, names("patchable"));
}

/// A request that came with a version: what is answered one before it, and at it.
struct Row {
    since: u16,
    state: ProvisionState,
    method: &'static str,
    path: &'static str,
    body: Value,
    old: u16,
    new: u16,
}

fn row(since: u16, state: ProvisionState, request: &'static str, body: Value, old: u16, new: u16) -> Row {
    let (method, path) = request.split_once(' ').unwrap();
    Row { since, state, method, path, body, old, new }
}

fn lists() -> Vec<Row> {
    let filter = |since, path| row(since, ProvisionState::Manageable, path, Value::Null, 406, 200);
    let get = |since, path, old| row(since, ProvisionState::Manageable, path, Value::Null, old, 200);
    vec![
        get(5, "GET /v1/nodes/n", 404),
        filter(8, "GET /v1/nodes?fields=uuid"),
        filter(9, "GET /v1/nodes?provision_state=manageable"),
        filter(16, "GET /v1/nodes?driver=redfish"),
        filter(21, "GET /v1/nodes?resource_class=x"),
        filter(42, "GET /v1/nodes?fault=power%20failure"),
        get(43, "GET /v1/nodes?detail=True", 400),
        filter(46, "GET /v1/nodes?conductor_group=x"),
        filter(49, "GET /v1/nodes?conductor=x"),
        filter(50, "GET /v1/nodes?owner=x"),
        filter(65, "GET /v1/nodes?lessee=x"),
        filter(82, "GET /v1/nodes?shard=x,y"),
        filter(82, "GET /v1/nodes?sharded=true"),
        filter(83, "GET /v1/nodes?parent_node=x"),
        filter(83, "GET /v1/nodes?include_children=true"),
        filter(104, "GET /v1/nodes?instance_name=x"),
        filter(104, "GET /v1/nodes/detail?instance_name=x"),
        get(28, "GET /v1/nodes/n/vifs", 404),
        get(37, "GET /v1/nodes/n/traits", 406),
        get(40, "GET /v1/nodes/n/bios", 404),
        get(40, "GET /v1/nodes/n/bios/Cores", 404),
        get(74, "GET /v1/nodes/n/bios?detail=true", 400),
        get(74, "GET /v1/nodes/n/bios?fields=name", 400),
        get(78, "GET /v1/nodes/n/history", 404),
        get(83, "GET /v1/nodes/n/children", 404),
        get(86, "GET /v1/nodes/n/firmware", 404),
        get(93, "GET /v1/nodes/able/vmedia", 404),
        get(114, "GET /v1/nodes/n/firmware?fields=vendor", 400),
        filter(12, "GET /v1/drivers/redfish/raid/logical_disk_properties"),
        filter(30, "GET /v1/drivers?type=dynamic"),
        filter(30, "GET /v1/drivers?detail=true"),
        filter(77, "GET /v1/drivers?fields=name"),
        filter(77, "GET /v1/drivers/redfish?fields=name"),
    ]
}

fn verbs() -> Vec<Row> {
    use ProvisionState as S;
    let verb = |since, state, target: &str, more: Value| {
        let mut body = json!({"target": target});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        row(since, state, "PUT /v1/nodes/n/states/provision", body, 406, 202)
    };
    let plain = |since, state, target| verb(since, state, target, json!({}));
    let steps = json!([{"interface": "deploy", "step": "erase_devices"}]);
    let deploy_steps = json!([{"interface": "deploy", "step": "write", "args": {}, "priority": 50}]);
    let drive = |since, state, target, drive: Value| Row {
        old: 400,
        ..verb(since, state, target, json!({"configdrive": drive}))
    };
    vec![
        plain(4, S::Enroll, "manage"),
        plain(4, S::Manageable, "provide"),
        plain(6, S::Manageable, "inspect"),
        plain(13, S::CleanWait, "abort"),
        verb(15, S::Manageable, "clean", json!({"clean_steps": steps})),
        plain(17, S::Manageable, "adopt"),
        verb(38, S::Active, "rescue", json!({"rescue_password": "x"})),
        plain(38, S::Rescue, "unrescue"),
        plain(41, S::InspectWait, "abort"),
        verb(69, S::Available, "active", json!({"deploy_steps": deploy_steps})),
        verb(70, S::Manageable, "clean", json!({"clean_steps": steps, "disable_ramdisk": true})),
        plain(73, S::Available, "deploy"),
        plain(73, S::Active, "undeploy"),
        plain(85, S::CleanHold, "unhold"),
        verb(87, S::Active, "service", json!({"service_steps": steps})),
        verb(108, S::Active, "service", json!({"service_steps": steps, "disable_ramdisk": true})),
        plain(110, S::DeployWait, "abort"),
        drive(35, S::Active, "rebuild", json!("aGVsbG8=")),
        drive(
            56,
            S::Available,
            "active",
            json!({"meta_data": {"a": 1}, "user_data": "x", "network_data": {}}),
        ),
        drive(59, S::Available, "active", json!({"vendor_data": {"a": 1}})),
    ]
}

fn others() -> Vec<Row> {
    use ProvisionState::Manageable as M;
    let name = |name: &str| json!([{"op": "replace", "path": "/name", "value": name}]);
    let driver = json!([{"op": "replace", "path": "/driver", "value": "redfish"}]);
    let special = json!([{"op": "add", "path": "/extra/a~1b", "value": 1}]);
    let unset = json!([{"op": "remove", "path": "/chassis_uuid"}]);
    let media = json!({"device_type": "cdrom", "image_url": "http://x/y.iso"});
    vec![
        row(10, M, "PATCH /v1/nodes/n", name("a_b"), 400, 200),
        row(12, M, "PUT /v1/nodes/n/states/raid", json!({}), 406, 204),
        row(25, M, "PATCH /v1/nodes/n", unset, 406, 200),
        row(27, M, "PUT /v1/nodes/n/states/power", json!({"target": "soft power off"}), 406, 202),
        row(27, M, "PUT /v1/nodes/n/states/power", json!({"target": "soft rebooting"}), 406, 202),
        row(27, M, "PUT /v1/nodes/n/states/power", json!({"target": "power on", "timeout": 5}), 406, 202),
        row(28, M, "POST /v1/nodes/n/vifs", json!({"id": "v"}), 404, 204),
        row(28, M, "DELETE /v1/nodes/n/vifs/v", Value::Null, 404, 204),
        row(29, M, "PUT /v1/nodes/able/management/inject_nmi", json!({}), 404, 204),
        row(37, M, "PUT /v1/nodes/n/traits", json!({"traits": ["CUSTOM_X"]}), 405, 204),
        row(37, M, "PUT /v1/nodes/n/traits/CUSTOM_X", Value::Null, 405, 204),
        row(37, M, "DELETE /v1/nodes/n/traits", Value::Null, 404, 204),
        row(45, M, "PATCH /v1/nodes/n?reset_interfaces=true", driver, 406, 200),
        row(75, M, "POST /v1/nodes", json!({"driver": "fake-hardware", "boot_mode": "uefi"}), 406, 201),
        row(75, M, "POST /v1/nodes", json!({"driver": "fake-hardware", "secure_boot": true}), 406, 201),
        row(76, M, "PUT /v1/nodes/able/states/boot_mode", json!({"target": "uefi"}), 404, 202),
        row(76, M, "PUT /v1/nodes/able/states/secure_boot", json!({"target": true}), 404, 202),
        row(89, M, "POST /v1/nodes/able/vmedia", media, 404, 204),
        row(89, M, "DELETE /v1/nodes/able/vmedia", Value::Null, 404, 204),
        row(98, M, "PATCH /v1/nodes/n", special, 400, 200),
    ]
}

#[tokio::test]
async fn requests_are_refused_before_their_version() {
    for Row { since, state, method, path, body, old, new } in
        [lists(), verbs(), others()].into_iter().flatten()
    {
        let api = Api::new();
        let node = api
            .node_with("n", state, |node| {
                if body[0]["path"] == "/chassis_uuid" {
                    node.other.insert("chassis_uuid".into(), Uuid::from_u128(9).to_string().into());
                }
            })
            .await;
        api.node_with("able", ProvisionState::Manageable, |node| {
            node.driver = "redfish".into();
            node.driver_info.insert("redfish_address".into(), "https://bmc".into());
        })
        .await;
        let before = api.everything().await;
        // Names in paths are for 1.5 and later.
        let path = if since < 6 { path.replace("/n/", &format!("/{}/", node.uuid)) } else { path.to_owned() };
        let sent = Some(body).filter(|body| !body.is_null());
        let answer = api.at(since - 1, method, &path, sent.clone()).await;
        let context = format!("{method} {path} {sent:?} at 1.{}: {}", since - 1, answer.text);
        assert_eq!(answer.status, old, "{context}");
        assert_eq!(api.everything().await, before, "{context}");
        let answer = api.at(since, method, &path, sent.clone()).await;
        assert_eq!(answer.status, new, "{method} {path} {sent:?} at 1.{since}: {}", answer.text);
    }
}

/// Parts of answers that are not fields of nodes.
#[tokio::test]
async fn parts_of_answers_come_with_their_version() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Available).await;
    let of = |path: &str| format!("/v1/nodes/{}{path}", node.uuid);
    for (since, path, part) in [
        (14, of(""), "states"),
        (24, of(""), "portgroups"),
        (32, of(""), "volume"),
        (12, of("/states"), "raid_config"),
        (12, of("/states"), "target_raid_config"),
        (75, of("/states"), "boot_mode"),
        (75, of("/states"), "secure_boot"),
        (14, "/v1/drivers/redfish".into(), "properties"),
        (30, "/v1/drivers/redfish".into(), "type"),
        (30, "/v1/drivers/redfish".into(), "default_power_interface"),
        (33, "/v1/drivers/redfish".into(), "enabled_storage_interfaces"),
        (38, "/v1/drivers/redfish".into(), "default_rescue_interface"),
        (40, "/v1/drivers/redfish".into(), "default_bios_interface"),
        (86, "/v1/drivers/redfish".into(), "default_firmware_interface"),
    ] {
        for (minor, there) in [(since - 1, false), (since, true)] {
            let shown = api.at(minor, "GET", &path, None).await.is(200).body;
            assert_eq!(shown.get(part).is_some(), there, "{part} of {path} at 1.{minor}");
        }
    }
    for path in [of(""), of("/states")] {
        assert_eq!(api.at(1, "GET", &path, None).await.body["provision_state"], Value::Null);
        assert_eq!(api.at(2, "GET", &path, None).await.body["provision_state"], "available");
    }
    let node = api.node("w", ProvisionState::InspectWait).await;
    let path = format!("/v1/nodes/{}", node.uuid);
    assert_eq!(api.at(38, "GET", &path, None).await.body["provision_state"], "inspecting");
    assert_eq!(api.at(39, "GET", &path, None).await.body["provision_state"], "inspect wait");
}

/// Until 1.91 `.json` at the end of a path may be a part of a name, or nothing.
#[tokio::test]
async fn json_at_the_end_of_paths() {
    let api = Api::new();
    api.node("n", ProvisionState::Manageable).await;
    api.node("odd.json", ProvisionState::Manageable).await;
    for (minor, path, status) in [
        (90, "/v1/nodes/n.json", 200),
        (91, "/v1/nodes/n.json", 404),
        (90, "/v1/nodes/odd.json", 200),
        (91, "/v1/nodes/odd.json", 200),
        (90, "/v1/nodes.json?limit=1", 200),
        (91, "/v1/nodes.json", 404),
        (90, "/v1/nodes/n/states.json", 200),
        (90, "/v1/nodes/no.json", 404),
    ] {
        assert_eq!(api.at(minor, "GET", path, None).await.status, status, "{path} at 1.{minor}");
    }
    // Nor is it taken off for those that ask for no version.
    api.raw(Request::get("/v1/nodes.json").body(Body::empty()).unwrap()).await.is(404);
    let patch = json!([{"op": "add", "path": "/extra/a", "value": 1}]);
    api.at(90, "PATCH", "/v1/nodes/n.json", Some(patch)).await.is(200);
    api.at(90, "DELETE", "/v1/nodes/odd.json", None).await.is(204);
    assert_eq!(api.get("/v1/nodes/n").await.is(200).body["extra"], json!({"a": 1}));
    api.get("/v1/nodes/odd.json").await.is(404);
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let api = Api::new();
    api.node("n", ProvisionState::Manageable).await;
    for path in ["/", "/v1", "/v1/nodes", NODE, "/v1/nodes/n/states", "/v1/drivers"] {
        let answer = api.at(115, "HEAD", path, None).await.is(200);
        assert_eq!(answer.text, "", "{path}");
    }
    assert_eq!(api.at(115, "HEAD", "/v1/nodes/nosuch", None).await.status, 404);
}

async fn family() -> (Api, Node) {
    let api = Api::new();
    let parent = api.node("parent", ProvisionState::Manageable).await;
    api.node_with("child", ProvisionState::Manageable, |node| {
        node.other.insert("parent_node".into(), parent.uuid.to_string().into());
    })
    .await;
    (api, parent)
}

#[tokio::test]
async fn children_are_listed_when_they_are_asked_for() {
    let (api, parent) = family().await;
    for (query, expected) in [
        (String::new(), vec!["parent"]),
        ("include_children=false".into(), vec!["parent"]),
        ("include_children=true".into(), vec!["child", "parent"]),
        (format!("parent_node={}", parent.uuid), vec!["child"]),
        (format!("parent_node={}&include_children=true", parent.uuid), vec!["child", "parent"]),
    ] {
        for path in ["/v1/nodes", "/v1/nodes/detail"] {
            let list = api.get(&format!("{path}?{query}&sort_key=name")).await.is(200).body;
            let names: Vec<_> =
                list["nodes"].as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()).collect();
            assert_eq!(names, expected, "{query}");
        }
    }
}

#[tokio::test]
async fn a_parent_is_a_node_of_the_same_owner() {
    let (api, parent) = family().await;
    api.node_with("theirs", ProvisionState::Manageable, |node| {
        node.other.insert("owner".into(), "them".into());
    })
    .await;
    let before = api.everything().await;
    let patch = |value: &str| json!([{"op": "add", "path": "/parent_node", "value": value}]);
    for bad in ["nosuch", "theirs", "not a name", &Uuid::from_u128(7).to_string()] {
        let says = format!("Unable to apply the requested parent_node '{bad}'. Requested value was invalid.");
        assert_eq!(api.patch("/v1/nodes/child", patch(bad)).await.is(400).fault(), says);
        let node = json!({"driver": "fake-hardware", "parent_node": bad});
        assert_eq!(api.post("/v1/nodes", node).await.is(400).fault(), says);
    }
    assert_eq!(api.everything().await, before);
    // By name as well; what is kept is the UUID.
    let made =
        api.post("/v1/nodes", json!({"driver": "fake-hardware", "parent_node": "parent"})).await.is(201);
    assert_eq!(made.body["parent_node"], json!(parent.uuid));
    let path = format!("/v1/nodes/{}", made.body["uuid"].as_str().unwrap());
    let unset = json!([{"op": "remove", "path": "/parent_node"}]);
    assert_eq!(api.patch(&path, unset).await.is(200).body["parent_node"], Value::Null);
    assert_eq!(api.patch(&path, patch("parent")).await.is(200).body["parent_node"], json!(parent.uuid));
}

#[tokio::test]
async fn the_name_of_an_instance_is_taken_from_where_older_clients_put_it() {
    let api = Api::new();
    api.node("n", ProvisionState::Manageable).await;
    let named = |name: &str| json!([{"op": "add", "path": "/instance_info/display_name", "value": name}]);
    assert_eq!(api.patch(NODE, named("web-1")).await.is(200).body["instance_name"], "web-1");
    assert_eq!(api.patch(NODE, named("web-2")).await.is(200).body["instance_name"], "web-1", "it has one");
}

#[tokio::test]
async fn network_data_are_looked_at() {
    let api = Api::new();
    api.node("n", ProvisionState::Manageable).await;
    let before = api.everything().await;
    let bad = json!({"links": [], "networks": []});
    let patch = json!([{"op": "add", "path": "/network_data", "value": bad}]);
    let says = "'services' is a required property";
    assert_eq!(api.patch(NODE, patch).await.is(400).fault(), format!("Invalid network_data: {says}"));
    let node = json!({"driver": "fake-hardware", "network_data": bad});
    assert_eq!(api.post("/v1/nodes", node).await.is(400).fault(), format!("Schema error for node: {says}"));
    assert_eq!(api.everything().await, before);
    let good = json!({"links": [], "networks": [], "services": []});
    let patch = json!([{"op": "add", "path": "/network_data", "value": good}]);
    assert_eq!(api.patch(NODE, patch).await.is(200).body["network_data"], good);
}

#[tokio::test]
async fn configuration_drives() {
    let api = Api::new();
    api.node("n", ProvisionState::Available).await;
    let before = api.everything().await;
    for (bad, says) in [
        (json!("{not json}"), "neither a JSON, nor a URL, nor a base64 string"),
        (json!({"meta_data": 3}), "meta_data is of the wrong type"),
        (json!({"network_data": null}), "network_data is of the wrong type"),
        (json!({"user_data": 3}), "user_data is of the wrong type"),
        (json!({"secret_data": "hunter2"}), "'secret_data' was unexpected"),
        (json!([1]), "for configdrive: [1]"),
    ] {
        let body = json!({"target": "active", "configdrive": bad});
        let fault = api.put("/v1/nodes/n/states/provision", body).await.is(400).fault();
        assert!(fault.contains(says) && !fault.contains("hunter2"), "{fault}");
    }
    let body = json!({"target": "manage", "configdrive": "https://x/drive"});
    let fault = api.put("/v1/nodes/n/states/provision", body).await.is(400).fault();
    assert!(fault.ends_with("only supported when setting provision state to active, rebuild"), "{fault}");
    assert_eq!(api.everything().await, before);
    let body = json!({"target": "active", "configdrive": "https://x/drive"});
    api.put("/v1/nodes/n/states/provision", body).await.is(202);
}

#[tokio::test]
async fn the_page_of_an_instance_is_the_last() {
    let api = Api::new();
    let instance = Uuid::from_u128(5);
    api.node_with("n", ProvisionState::Active, |node| node.instance_uuid = Some(instance)).await;
    api.node("m", ProvisionState::Active).await;
    assert!(api.get("/v1/nodes?limit=1").await.is(200).body.get("next").is_some());
    let list = api.get(&format!("/v1/nodes?limit=1&instance_uuid={instance}")).await.is(200).body;
    assert!(list.get("next").is_none());
    assert_eq!(list["nodes"].as_array().unwrap().len(), 1);
}
