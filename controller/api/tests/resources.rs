//! Resources: one table for what all of them do, and a test for each rule of one alone.

mod common;

use common::{Api, keys};
use model::{PowerState, ProvisionState};
use serde_json::{Value, json};

/// One resource, as the tests make it.
struct Case {
    path: &'static str,
    list: &'static str,
    since: u16,
    /// Status of a POST before that.
    post_before: u16,
    /// A new one; `N` in it is a number of its own, `NODE` the node.
    new: Value,
    /// Keys in lists.
    short: &'static [&'static str],
    /// A PATCH that is taken, and what it makes of a field.
    patch: (Value, &'static str, Value),
    /// A value that each of these fields does not take.
    bad: &'static [(&'static str, &'static str)],
    /// What must be there.
    required: &'static [&'static str],
    /// Something no two may share: its field.
    unique: Option<&'static str>,
    /// Lists take `detail`, and have a path for it.
    detail: (bool, bool),
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            path: "chassis",
            list: "chassis",
            since: 1,
            post_before: 404,
            new: json!({"description": "rack N"}),
            short: &["description", "links", "uuid"],
            patch: (
                json!([{"op": "replace", "path": "/description", "value": "x"}]),
                "description",
                json!("x"),
            ),
            bad: &[("description", "5"), ("extra", "[]"), ("uuid", "\"x\"")],
            required: &[],
            unique: None,
            detail: (true, true),
        },
        Case {
            path: "portgroups",
            list: "portgroups",
            since: 23,
            post_before: 404,
            new: json!({"node_uuid": "NODE", "address": "52:54:00:00:00:0N", "name": "bond-N"}),
            short: &["address", "links", "name", "uuid"],
            patch: (json!([{"op": "add", "path": "/mode", "value": "802.3ad"}]), "mode", json!("802.3ad")),
            bad: &[
                ("address", "\"x\""),
                ("name", "\"a b\""),
                ("properties", "5"),
                ("standalone_ports_supported", "\"maybe\""),
                ("node_uuid", "\"00000000-0000-4000-8000-000000000000\""),
                ("node_uuid", "null"),
            ],
            required: &["node_uuid"],
            unique: Some("address"),
            detail: (true, true),
        },
        Case {
            path: "volume/connectors",
            list: "connectors",
            since: 32,
            post_before: 404,
            new: json!({"node_uuid": "NODE", "type": "iqn", "connector_id": "iqn.2026-01.example:N"}),
            short: &["connector_id", "links", "node_uuid", "type", "uuid"],
            patch: (json!([{"op": "replace", "path": "/type", "value": "ip"}]), "type", json!("ip")),
            bad: &[("type", "null"), ("connector_id", "5"), ("extra", "\"x\""), ("node_uuid", "\"x\"")],
            required: &["connector_id", "node_uuid", "type"],
            unique: Some("connector_id"),
            detail: (true, false),
        },
        Case {
            path: "volume/targets",
            list: "targets",
            since: 32,
            post_before: 404,
            new: json!({"node_uuid": "NODE", "boot_index": "INDEX", "volume_id": "v", "volume_type": "iscsi"}),
            short: &["boot_index", "links", "node_uuid", "uuid", "volume_id", "volume_type"],
            patch: (json!([{"op": "replace", "path": "/volume_id", "value": "w"}]), "volume_id", json!("w")),
            bad: &[("boot_index", "\"0\""), ("volume_id", "null"), ("properties", "[]")],
            required: &["boot_index", "node_uuid", "volume_id", "volume_type"],
            unique: Some("boot_index"),
            detail: (true, false),
        },
        Case {
            path: "allocations",
            list: "allocations",
            since: 52,
            post_before: 405,
            new: json!({"name": "wish-N", "resource_class": "none-such"}),
            short: &[
                "candidate_nodes",
                "created_at",
                "extra",
                "last_error",
                "links",
                "name",
                "node_uuid",
                "owner",
                "resource_class",
                "state",
                "traits",
                "updated_at",
                "uuid",
            ],
            patch: (json!([{"op": "add", "path": "/extra/k", "value": 1}]), "extra", json!({"k": 1})),
            bad: &[
                ("name", "\"a b\""),
                ("traits", "[\"x\"]"),
                ("candidate_nodes", "[\"nosuch\"]"),
                ("candidate_nodes", "\"x\""),
                ("resource_class", "5"),
            ],
            required: &[],
            unique: Some("name"),
            detail: (false, false),
        },
        Case {
            path: "runbooks",
            list: "runbooks",
            since: 92,
            post_before: 405,
            new: json!({"name": "CUSTOM_N", "steps": [{"interface": "deploy", "step": "erase_devices", "order": 1}]}),
            short: &["links", "name", "uuid"],
            patch: (json!([{"op": "add", "path": "/public", "value": true}]), "public", json!(true)),
            bad: &[
                ("name", "\"a b\""),
                ("name", "null"),
                ("steps", "[]"),
                ("steps", "[{\"interface\": \"deploy\", \"step\": \"x\"}]"),
                ("steps", "[{\"interface\": \"nosuch\", \"step\": \"x\", \"order\": 0}]"),
                ("disable_ramdisk", "5"),
            ],
            required: &["name", "steps"],
            unique: Some("name"),
            detail: (true, false),
        },
        Case {
            path: "inspection_rules",
            list: "inspection_rules",
            since: 96,
            post_before: 405,
            new: json!({"priority": "INDEX", "actions": [{"op": "fail", "args": {"msg": "no"}}]}),
            short: &["description", "links", "phase", "priority", "uuid"],
            patch: (json!([{"op": "add", "path": "/description", "value": "x"}]), "description", json!("x")),
            bad: &[
                ("actions", "[]"),
                ("actions", "[{\"op\": \"nosuch\", \"args\": {}}]"),
                ("actions", "[{\"op\": \"fail\", \"args\": {}}]"),
                ("conditions", "[{\"op\": \"!!eq\", \"args\": {\"values\": []}}]"),
                ("priority", "-1"),
                ("priority", "10000"),
                ("phase", "\"nosuch\""),
            ],
            required: &["actions"],
            unique: None,
            detail: (true, false),
        },
    ]
}

impl Case {
    fn new(&self, number: u64, node: &str) -> Value {
        let text = self.new.to_string();
        let text = text.replace("\"INDEX\"", &number.to_string()).replace("NODE", node);
        serde_json::from_str(&text.replace('N', &number.to_string())).expect("a body")
    }
}

#[tokio::test]
async fn every_resource_is_made_listed_changed_and_removed() {
    for case in cases() {
        let api = Api::new();
        let node = api.node_with("n", ProvisionState::Manageable, |node| {
            node.power_state = Some(PowerState::Off);
        });
        let node = node.await.uuid.to_string().to_lowercase();
        let path = format!("/v1/{}", case.path);
        eprintln!("{path}");
        // Before its version.
        if case.since > 1 {
            let before = case.since - 1;
            api.at(before, "GET", &path, None).await.is(404);
            api.at(before, "POST", &path, Some(case.new(1, &node))).await.is(case.post_before);
            assert!(api.at(before, "GET", "/v1/", None).await.body.get(case.path).is_none());
        }
        let root = case.path.split('/').next().unwrap();
        assert!(api.get("/v1/").await.body[root][0]["href"].is_string());

        let mut made = Vec::new();
        for number in 1..=3 {
            let answer = api.post(&path, case.new(number, &node)).await.is(201);
            let uuid = answer.body["uuid"].as_str().unwrap().to_owned();
            let place = format!("http://127.0.0.1:6385{path}/{uuid}");
            assert_eq!(answer.header("location"), Some(place.as_str()));
            assert_eq!(answer.body["links"][0]["href"], place);
            assert_eq!(api.get(&format!("{path}/{uuid}")).await.is(200).body, answer.body);
            if let Some(name) = answer.body["name"].as_str() {
                assert_eq!(api.get(&format!("{path}/{name}")).await.is(200).body, answer.body);
            }
            made.push(uuid);
        }
        let before = api.everything().await;
        reads(&api, &case, &path, &made).await;
        refuses(&api, &case, &path, &made, &node).await;
        assert_eq!(api.everything().await, before, "{path}: what was refused changed something");

        let item = format!("{path}/{}", made[1]);
        let (patch, field, value) = &case.patch;
        let patched = api.patch(&item, patch.clone()).await.is(200).body;
        assert_eq!(&patched[field], value);
        assert!(patched["updated_at"].is_string());
        assert_eq!(api.get(&item).await.body, patched);
        api.delete(&item).await.is(204);
        api.delete(&item).await.is(404);
        api.get(&item).await.is(404);
        assert_eq!(api.get(&path).await.body[case.list].as_array().unwrap().len(), 2);
    }
}

async fn reads(api: &Api, case: &Case, path: &str, made: &[String]) {
    let list = async |query: &str| api.get(&format!("{path}{query}")).await.is(200).body;
    let uuids = |body: &Value| -> Vec<String> {
        let items = body[case.list].as_array().expect("a list");
        items.iter().map(|item| item["uuid"].as_str().expect("a UUID").to_owned()).collect()
    };
    let all = list("").await;
    assert_eq!(uuids(&all), made);
    assert_eq!(keys(&all[case.list][0]), case.short);
    // Paging.
    let first = list("?limit=2&sort_key=created_at&sort_dir=desc").await;
    assert_eq!(uuids(&first), [made[2].clone(), made[1].clone()]);
    let next = first["next"].as_str().expect("there is more").replace("http://127.0.0.1:6385", "");
    assert_eq!(uuids(&api.get(&next).await.is(200).body), [made[0].clone()]);
    // Fields.
    let some = list("?fields=uuid,created_at").await;
    assert_eq!(keys(&some[case.list][0]), ["created_at", "links", "uuid"]);
    let one = api.get(&format!("{path}/{}?fields=uuid", made[0])).await.is(200).body;
    assert_eq!(keys(&one), ["links", "uuid"]);
    let whole = api.get(&format!("{path}/{}", made[0])).await.body;
    let (detail, has_path) = case.detail;
    if detail {
        assert_eq!(list("?detail=True").await[case.list][0], whole);
    }
    if has_path {
        assert_eq!(list("/detail").await[case.list][0], whole);
    }
    for (query, status) in [
        ("?fields=nosuch", 400),
        ("?nosuch=1", 400),
        ("?limit=-1", 400),
        ("?sort_key=nosuch", 400),
        ("?sort_key=links", 400),
        ("?sort_dir=up", 400),
        ("?marker=00000000-0000-4000-8000-000000000000", 404),
        ("?detail=True&fields=uuid", 400),
        ("/00000000-0000-4000-8000-000000000000", 404),
        ("/a%20b", 400),
    ] {
        api.get(&format!("{path}{query}")).await.is(status);
    }
}

async fn refuses(api: &Api, case: &Case, path: &str, made: &[String], node: &str) {
    let new = case.new(7, node);
    let with = |field: &str, value: Value| {
        let mut body = new.clone();
        body[field] = value;
        body
    };
    for (field, value) in case.bad {
        let value: Value = serde_json::from_str(value).expect("a value");
        let answer = api.post(path, with(field, value)).await;
        assert_eq!(answer.status, 400, "{path} {field}: {}", answer.text);
    }
    for field in case.required {
        let mut body = new.clone();
        body.as_object_mut().expect("an object").remove(*field);
        let fault = api.post(path, body).await.is(400).fault();
        assert!(fault.contains(&format!("'{field}' is a required property")), "{fault}");
        let patch = json!([{"op": "remove", "path": format!("/{field}")}]);
        api.patch(&format!("{path}/{}", made[0]), patch).await.is(400);
    }
    api.post(path, with("nosuch", json!(1))).await.is(400);
    api.post(path, json!([])).await.is(400);
    let fault = api.post(path, with("uuid", json!(made[0]))).await.is(409).fault();
    assert!(fault.contains(&format!("with UUID {} already exists.", made[0])), "{fault}");
    if let Some(unique) = case.unique {
        let taken = case.new(1, node)[unique].clone();
        api.post(path, with(unique, taken)).await.is(409);
    }
    let item = format!("{path}/{}", made[0]);
    for patch in [
        json!({}),
        json!([{"op": "replace", "path": "/uuid", "value": "x"}]),
        json!([{"op": "replace", "path": "/created_at", "value": "x"}]),
        json!([{"op": "add", "path": "/nosuch", "value": 1}]),
        json!([{"op": "test", "path": "/extra", "value": {}}]),
        json!([{"op": "remove", "path": "/extra/nosuch"}]),
    ] {
        api.patch(&item, patch).await.is(400);
    }
}

#[tokio::test]
async fn a_chassis_with_nodes_stays() {
    let api = Api::new();
    let uuid = api.post("/v1/chassis", json!({})).await.is(201).body["uuid"].clone();
    let path = format!("/v1/chassis/{}", uuid.as_str().unwrap());
    let inside = json!({"driver": "fake-hardware", "name": "inside", "chassis_uuid": uuid});
    assert_eq!(api.post("/v1/nodes", inside).await.is(201).body["chassis_uuid"], uuid);
    api.node("outside", ProvisionState::Enroll).await;
    let nobody = json!("00000000-0000-4000-8000-000000000000");
    let stray = json!({"driver": "fake-hardware", "chassis_uuid": nobody});
    assert!(api.post("/v1/nodes", stray).await.is(400).fault().starts_with("Chassis"));
    let patch = json!([{"op": "add", "path": "/chassis_uuid", "value": nobody}]);
    api.patch("/v1/nodes/outside", patch).await.is(400);

    for below in ["nodes", "nodes/detail", "nodes?detail=true", "nodes?fields=name"] {
        let body = api.get(&format!("{path}/{below}")).await.is(200).body;
        let names: Vec<_> = body["nodes"].as_array().unwrap().iter().map(|node| &node["name"]).collect();
        assert_eq!(names, ["inside"], "{below}");
    }
    assert!(api.delete(&path).await.is(400).fault().ends_with("contains nodes."));
    let out = json!([{"op": "remove", "path": "/chassis_uuid"}]);
    api.patch("/v1/nodes/inside", out).await.is(200);
    api.delete(&path).await.is(204);
}

#[tokio::test]
async fn a_port_belongs_to_a_group_of_its_node() {
    let api = Api::new();
    let (a, b) = (api.node("a", ProvisionState::Enroll).await, api.node("b", ProvisionState::Enroll).await);
    let group = json!({"node_uuid": a.uuid, "name": "bond0", "standalone_ports_supported": false});
    let group = api.post("/v1/portgroups", group).await.is(201).body;
    assert_eq!((&group["mode"], &group["extra"]), (&json!("active-backup"), &json!({})));
    let uuid = group["uuid"].clone();
    let port = |node: &model::Node, pxe: bool| json!({"node_uuid": node.uuid, "address": "52:54:00:00:00:01", "portgroup_uuid": uuid, "pxe_enabled": pxe});
    api.post("/v1/ports", port(&b, false)).await.is(400);
    api.post("/v1/ports", port(&a, true)).await.is(409);
    let port = api.post("/v1/ports", port(&a, false)).await.is(201).body;
    assert_eq!(port["portgroup_uuid"], uuid);
    api.port(&a, "52:54:00:00:00:02").await;
    for path in
        ["/v1/portgroups/bond0/ports", "/v1/portgroups/bond0/ports/detail", "/v1/ports?portgroup=bond0"]
    {
        let body = api.get(path).await.is(200).body;
        assert_eq!(body["ports"].as_array().unwrap().len(), 1, "{path}");
    }
    for (path, count) in [
        ("/v1/nodes/a/portgroups", 1),
        ("/v1/nodes/b/portgroups", 0),
        ("/v1/portgroups?node=a", 1),
        ("/v1/portgroups?address=52:54:00:00:00:09", 0),
        ("/v1/nodes/a/portgroups/detail", 1),
    ] {
        let body = api.get(path).await.is(200).body;
        assert_eq!(body["portgroups"].as_array().unwrap().len(), count, "{path}");
    }
    api.at(23, "GET", "/v1/portgroups/bond0/ports", None).await.is(404);
    api.get("/v1/portgroups/nosuch/ports").await.is(404);
    assert!(api.at(25, "GET", "/v1/portgroups/bond0", None).await.body.get("mode").is_none());
    api.at(25, "GET", "/v1/portgroups/bond0?fields=mode", None).await.is(406);
    let mode = json!([{"op": "add", "path": "/mode", "value": "x"}]);
    api.at(25, "PATCH", "/v1/portgroups/bond0", Some(mode)).await.is(406);

    let moved = json!([{"op": "replace", "path": "/node_uuid", "value": b.uuid}]);
    api.patch("/v1/portgroups/bond0", moved).await.is(400);
    assert!(api.delete("/v1/portgroups/bond0").await.is(400).fault().ends_with("contains ports."));
    api.delete(&format!("/v1/ports/{}", port["uuid"].as_str().unwrap())).await.is(204);
    // The node takes it along.
    api.delete("/v1/nodes/a").await.is(204);
    api.get("/v1/portgroups/bond0").await.is(404);
}

#[tokio::test]
async fn volumes_change_while_the_node_is_off() {
    let api = Api::new();
    let node =
        api.node_with("n", ProvisionState::Active, |node| node.power_state = Some(PowerState::On)).await;
    let target = json!({"node_uuid": node.uuid, "boot_index": 0, "volume_id": "v", "volume_type": "iscsi",
        "properties": {"auth_password": "hunter2", "target_lun": 1}});
    let made = api.post("/v1/volume/targets", target).await.is(201).body;
    assert_eq!(made["properties"], json!({"auth_password": "******", "target_lun": 1}));
    let path = format!("/v1/volume/targets/{}", made["uuid"].as_str().unwrap());
    let patch = json!([{"op": "replace", "path": "/volume_id", "value": "w"}]);
    let fault = api.patch(&path, patch.clone()).await.is(400).fault();
    assert!(fault.contains("\"volume target update\"") && fault.ends_with("\"power on\"."), "{fault}");
    api.delete(&path).await.is(400);
    let mut off = api.store_node(&node).await;
    off.power_state = Some(PowerState::Off);
    api.update(off).await;
    assert_eq!(api.patch(&path, patch).await.is(200).body["volume_id"], "w");
    for (path, key) in [("volume/targets", "targets"), ("volume/connectors", "connectors")] {
        let body = api.get(&format!("/v1/nodes/n/{path}")).await.is(200).body;
        assert_eq!(body[key].as_array().unwrap().len(), usize::from(key == "targets"));
    }
    let links = api.get("/v1/nodes/n/volume").await.is(200).body;
    assert_eq!(links["targets"][0]["href"], "http://127.0.0.1:6385/v1/nodes/n/volume/targets");
    assert_eq!(keys(&api.get("/v1/volume").await.is(200).body), ["connectors", "links", "targets"]);
    api.delete(&path).await.is(204);
}

#[tokio::test]
async fn an_allocation_is_given_a_free_node_that_suits_it() {
    let api = Api::new();
    for (name, class, shape) in [
        ("other-class", "gpu", 0),
        ("in-maintenance", "cpu", 1),
        ("no-trait", "cpu", 2),
        ("powerless", "cpu", 3),
        ("right", "cpu", 4),
        ("wish-right", "cpu", 4),
    ] {
        api.node_with(name, ProvisionState::Available, |node| {
            node.resource_class = Some(class.into());
            node.maintenance = shape == 1;
            node.power_state = (shape != 3).then_some(PowerState::Off);
            if shape != 2 {
                node.traits.insert("CUSTOM_X".into());
            }
        })
        .await;
    }
    let wish = json!({"name": "wish-right", "resource_class": "cpu", "traits": ["CUSTOM_X"]});
    let given = api.post("/v1/allocations", wish).await.is(201).body;
    assert_eq!((&given["state"], &given["last_error"]), (&json!("active"), &Value::Null));
    let node = api.get("/v1/nodes/wish-right").await.body;
    assert_eq!(given["node_uuid"], node["uuid"], "the one of the same name");
    assert_eq!((&node["allocation_uuid"], &node["instance_uuid"]), (&given["uuid"], &given["uuid"]));
    assert_eq!(node["instance_info"]["traits"], json!(["CUSTOM_X"]));
    assert_eq!(api.get("/v1/nodes/wish-right/allocation").await.is(200).body, given);
    api.get("/v1/nodes/right/allocation").await.is(404);

    let second =
        json!({"resource_class": "cpu", "traits": ["CUSTOM_X"], "candidate_nodes": ["right", "no-trait"]});
    let second = api.post("/v1/allocations", second).await.is(201).body;
    assert_eq!(second["node_uuid"], api.get("/v1/nodes/right").await.body["uuid"]);
    let third = json!({"resource_class": "cpu", "traits": ["CUSTOM_X"]});
    let third = api.post("/v1/allocations", third).await.is(201).body;
    assert_eq!((&third["state"], &third["node_uuid"]), (&json!("error"), &Value::Null));
    assert!(third["last_error"].as_str().unwrap().ends_with("requested traits CUSTOM_X."), "{third}");
    for (query, count) in
        [("state=active", 2), ("state=error", 1), ("node=right", 1), ("resource_class=x", 0)]
    {
        let body = api.get(&format!("/v1/allocations?{query}")).await.is(200).body;
        assert_eq!(body["allocations"].as_array().unwrap().len(), count, "{query}");
    }
    api.post("/v1/allocations", json!({"name": "x"})).await.is(400);

    // Whoever frees the node ends the allocation, and the other way round.
    api.delete("/v1/nodes/right/allocation").await.is(204);
    assert_eq!(api.get("/v1/nodes/right").await.body["instance_uuid"], Value::Null);
    api.get(&format!("/v1/allocations/{}", second["uuid"].as_str().unwrap())).await.is(404);
    let free = json!([{"op": "remove", "path": "/instance_uuid"}]);
    api.patch("/v1/nodes/wish-right", free).await.is(200);
    api.get("/v1/allocations/wish-right").await.is(404);
}

#[tokio::test]
async fn an_active_node_keeps_its_allocation() {
    let api = Api::new();
    let instance = uuid::Uuid::new_v4();
    let node = api.node_with("n", ProvisionState::Active, |node| {
        node.resource_class = Some("cpu".into());
        node.instance_uuid = Some(instance);
    });
    let node = node.await;
    let given = api.post("/v1/allocations", json!({"node": "n", "name": "late"})).await.is(201).body;
    assert_eq!((&given["uuid"], &given["resource_class"]), (&json!(instance), &json!("cpu")));
    assert_eq!(given["node_uuid"], json!(node.uuid));
    let fault = api.delete("/v1/allocations/late").await.is(409).fault();
    assert!(fault.contains("active (and maintenance mode is off)"), "{fault}");
    let free = json!([{"op": "remove", "path": "/instance_uuid"}]);
    api.patch("/v1/nodes/n", free).await.is(409);
    api.put("/v1/nodes/n/maintenance", json!({})).await.is(202);
    api.delete("/v1/allocations/late").await.is(204);
    api.at(57, "POST", "/v1/allocations", Some(json!({"node": "n"}))).await.is(400);
    api.post("/v1/allocations", json!({"node": "nosuch"})).await.is(400);
    let other = api.node("enrolled", ProvisionState::Enroll).await;
    api.post("/v1/allocations", json!({"node": other.uuid})).await.is(400);
}

#[tokio::test]
async fn a_runbook_cleans_the_nodes_it_is_approved_for() {
    let api = Api::new();
    let node = api.node_with("n", ProvisionState::Manageable, |node| {
        node.traits.insert("CUSTOM_OK".into());
    });
    let node = node.await;
    let steps = json!([
        {"interface": "deploy", "step": "second", "args": {"token": "t"}, "order": 2},
        {"interface": "raid", "step": "first", "order": "1"},
    ]);
    let made = api.post("/v1/runbooks", json!({"name": "wipe", "steps": steps})).await.is(201).body;
    assert_eq!(made["steps"][0]["args"], json!({"token": "******"}));
    assert_eq!((&made["traits"], &made["public"]), (&json!([]), &json!(false)));
    let clean = json!({"target": "clean", "runbook": "wipe"});
    let fault = api.put("/v1/nodes/n/states/provision", clean.clone()).await.is(400).fault();
    assert!(fault.contains("has no traits configured"), "{fault}");
    api.put("/v1/runbooks/wipe/traits", json!({"traits": ["CUSTOM_NO"]})).await.is(204);
    let fault = api.put("/v1/nodes/n/states/provision", clean.clone()).await.is(400).fault();
    assert!(fault.contains("has not been approved"), "{fault}");
    api.at(112, "PUT", "/v1/runbooks/wipe/traits/CUSTOM_OK", None).await.is(204);
    api.at(111, "GET", "/v1/runbooks/wipe/traits", None).await.is(404);
    let traits = api.get("/v1/runbooks/wipe/traits").await.is(200).body;
    assert_eq!(traits, json!({"traits": ["CUSTOM_NO", "CUSTOM_OK"]}));
    api.delete("/v1/runbooks/wipe/traits/CUSTOM_NO").await.is(204);
    for (body, status) in [
        (json!({"target": "clean", "runbook": "nosuch"}), 404),
        (
            json!({"target": "clean", "runbook": "wipe", "clean_steps": [{"interface": "raid", "step": "x"}]}),
            400,
        ),
        (json!({"target": "provide", "runbook": "wipe"}), 400),
    ] {
        api.put("/v1/nodes/n/states/provision", body).await.is(status);
    }
    // Before 1.112 the name itself is the trait.
    let old = api.at(111, "PUT", "/v1/nodes/n/states/provision", Some(clean.clone())).await.is(400).fault();
    assert!(old.contains("has not been approved"), "{old}");
    api.at(91, "PUT", "/v1/nodes/n/states/provision", Some(clean.clone())).await.is(406);
    let named = json!({"name": "wipe", "steps": steps});
    api.at(111, "POST", "/v1/runbooks", Some(named)).await.is(400);

    api.put("/v1/nodes/n/states/provision", clean).await.is(202);
    let run = api.store_node(&node).await.run.expect("a run");
    let requested: Vec<_> = run.requested.iter().map(|step| step.step.as_str()).collect();
    assert_eq!(requested, ["first", "second"], "in their order");
    assert_eq!(run.requested[1].args["token"], "t");
}

#[tokio::test]
async fn sensitive_rules_hide_what_they_do() {
    let api = Api::new();
    let rule = json!({"sensitive": true, "actions": [{"op": "set-attribute", "args": {"path": "/extra/k", "value": 1}}],
        "conditions": [{"op": "!eq", "args": {"values": [1, 2]}}]});
    let made = api.post("/v1/inspection_rules", rule).await.is(201).body;
    assert_eq!(
        (&made["actions"], &made["conditions"], &made["phase"]),
        (&Value::Null, &Value::Null, &json!("main"))
    );
    let path = format!("/v1/inspection_rules/{}", made["uuid"].as_str().unwrap());
    let open = json!([{"op": "replace", "path": "/sensitive", "value": false}]);
    api.patch(&path, open).await.is(400);
    api.delete("/v1/inspection_rules").await.is(204);
    assert_eq!(api.get("/v1/inspection_rules").await.body, json!({"inspection_rules": []}));
}

#[tokio::test]
async fn conductors_shards_and_events() {
    let api = Api::new();
    api.at(48, "GET", "/v1/conductors", None).await.is(404);
    let all = api.get("/v1/conductors").await.is(200).body;
    assert_eq!(keys(&all["conductors"][0]), ["alive", "conductor_group", "hostname", "links"]);
    let one = api.get("/v1/conductors/probe-conductor").await.is(200).body;
    assert_eq!((&one["hostname"], &one["alive"]), (&json!("probe-conductor"), &json!(true)));
    assert!(one["drivers"].as_array().unwrap().contains(&json!("fake-hardware")));
    api.get("/v1/conductors/nosuch").await.is(404);
    api.get("/v1/conductors?fields=nosuch").await.is(400);
    let after = api.get("/v1/conductors?marker=probe-conductor").await.is(200).body;
    assert_eq!(after, json!({"conductors": []}));

    for (name, shard) in [("a", Some("s")), ("b", Some("s")), ("c", None)] {
        api.node_with(name, ProvisionState::Enroll, |node| {
            node.other.extend(shard.map(|shard| ("shard".to_owned(), json!(shard))));
        })
        .await;
    }
    let shards = api.get("/v1/shards").await.is(200).body;
    assert_eq!(shards, json!({"shards": [{"name": "s", "count": 2}, {"name": null, "count": 1}]}));
    api.at(81, "GET", "/v1/shards", None).await.is(404);

    let event = json!({"event": "network.bind_port", "port_id": uuid::Uuid::nil(), "status": "ACTIVE",
        "mac_address": "52:54:00:00:00:01", "device_id": null});
    api.post("/v1/events", json!({"events": [event]})).await.is(204);
    api.at(53, "POST", "/v1/events", Some(json!({"events": [event]}))).await.is(404);
    for (field, value) in [
        ("event", json!("nosuch")),
        ("mac_address", json!("x")),
        ("status", json!(null)),
        ("nosuch", json!(1)),
    ] {
        let mut bad = event.clone();
        bad[field] = value;
        api.post("/v1/events", json!({"events": [bad]})).await.is(400);
    }
    api.post("/v1/events", json!({"events": []})).await.is(400);
}
