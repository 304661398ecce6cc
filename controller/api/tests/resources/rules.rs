//! What one resource alone must hold to.

use crate::common::{Api, keys};
use model::{ConductorReport, Node, PowerState, ProvisionState, Timestamp};
use serde_json::{Value, json};

#[tokio::test]
async fn a_chassis_with_nodes_stays() {
    let api = Api::new();
    let uuid = api.post("/v1/chassis", json!({})).await.is(201).body["uuid"].clone();
    let path = format!("/v1/chassis/{}", uuid.as_str().unwrap());
    let inside = json!({"driver": "fake-hardware", "name": "inside", "chassis_uuid": uuid});
    assert_eq!(api.post("/v1/nodes", inside).await.is(201).body["chassis_uuid"], uuid);
    api.node("outside", ProvisionState::Enroll).await;
    let unknown = json!("00000000-0000-4000-8000-000000000000");
    let stray = json!({"driver": "fake-hardware", "chassis_uuid": unknown});
    assert!(api.post("/v1/nodes", stray).await.is(400).fault().starts_with("Chassis"));
    let patch = json!([{"op": "add", "path": "/chassis_uuid", "value": unknown}]);
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

/// What became of an allocation that is wished for.
async fn allocated(api: &Api, wish: Value) -> Value {
    let made = api.post("/v1/allocations", wish).await.is(201).body;
    api.get(&format!("/v1/allocations/{}", made["uuid"].as_str().unwrap())).await.is(200).body
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
    let given = allocated(&api, wish).await;
    assert_eq!((&given["state"], &given["last_error"]), (&json!("active"), &Value::Null));
    let node = api.get("/v1/nodes/wish-right").await.body;
    assert_eq!(given["node_uuid"], node["uuid"], "the one of the same name");
    assert_eq!((&node["allocation_uuid"], &node["instance_uuid"]), (&given["uuid"], &given["uuid"]));
    assert_eq!(node["instance_info"]["traits"], json!(["CUSTOM_X"]));
    assert_eq!(api.get("/v1/nodes/wish-right/allocation").await.is(200).body, given);
    api.get("/v1/nodes/right/allocation").await.is(404);

    let second =
        json!({"resource_class": "cpu", "traits": ["CUSTOM_X"], "candidate_nodes": ["right", "no-trait"]});
    let second = allocated(&api, second).await;
    assert_eq!(second["node_uuid"], api.get("/v1/nodes/right").await.body["uuid"]);
    let third = json!({"resource_class": "cpu", "traits": ["CUSTOM_X"]});
    let third = allocated(&api, third).await;
    assert_eq!((&third["state"], &third["node_uuid"]), (&json!("error"), &Value::Null));
    assert!(third["last_error"].as_str().unwrap().ends_with("requested traits CUSTOM_X."), "{third}");
    for (query, count) in
        [("state=active", 2), ("state=error", 1), ("node=right", 1), ("resource_class=x", 0)]
    {
        let body = api.get(&format!("/v1/allocations?{query}")).await.is(200).body;
        assert_eq!(body["allocations"].as_array().unwrap().len(), count, "{query}");
    }
    api.post("/v1/allocations", json!({"name": "x"})).await.is(400);

    // Freeing the node ends the allocation, and the other way round.
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

/// This controller has not reported itself; one of two others is gone.
#[tokio::test]
async fn several_controllers_share_a_store() {
    let api = Api::new();
    let report = |hostname: &str, alive_until: i64| ConductorReport {
        hostname: hostname.to_owned(),
        group: Some("rack1".to_owned()),
        drivers: vec!["ipmi".to_owned()],
        version: "1".to_owned(),
        agent_api: None,
        bmc_request_timeout_s: None,
        started_at: Timestamp(1_000_000),
        reported_at: Timestamp(2_000_000),
        alive_until: Timestamp(alive_until),
    };
    for report in [report("c2", i64::MAX), report("c1", 3_000_000)] {
        api.store.report_conductor(report).await.unwrap();
    }
    let list = |body: &Value| -> Vec<(String, bool)> {
        let all = body["conductors"].as_array().unwrap().iter();
        all.map(|one| (one["hostname"].as_str().unwrap().to_owned(), one["alive"] == true)).collect()
    };
    let own = ("probe-conductor".to_owned(), true);
    let (gone, alive) = (("c1".to_owned(), false), ("c2".to_owned(), true));
    let all = api.get("/v1/conductors").await.is(200).body;
    assert_eq!(list(&all), [gone.clone(), alive.clone(), own.clone()]);
    let one = api.get("/v1/conductors/c1").await.is(200).body;
    assert_eq!((&one["conductor_group"], &one["drivers"]), (&json!("rack1"), &json!(["ipmi"])));
    assert_eq!(one["created_at"], "1970-01-01T00:00:01+00:00");
    assert_eq!(one["updated_at"], "1970-01-01T00:00:02+00:00");
    let back = api.get("/v1/conductors?sort_key=hostname&sort_dir=desc").await.is(200).body;
    assert_eq!(list(&back), [own.clone(), alive.clone(), gone.clone()]);
    let first = api.get("/v1/conductors?limit=1").await.is(200).body;
    assert_eq!((list(&first), first["next"].as_str().unwrap().contains("marker=c1")), (vec![gone], true));
    let next = api.get("/v1/conductors?limit=9&marker=c1").await.is(200).body;
    assert_eq!(list(&next), [alive, own]);

    // Each node shows who drives it, and lists are filtered by that.
    api.members.replace(vec![report("c2", i64::MAX)]);
    for (name, group) in [("of-c2", "rack1"), ("undriven", "rack2")] {
        let in_group = |node: &mut Node| drop(node.other.insert("conductor_group".to_owned(), json!(group)));
        api.node_with(name, ProvisionState::Enroll, in_group).await;
    }
    let unnamed = ConductorReport { group: None, ..report("probe-conductor", i64::MAX) };
    for (alive, expected) in [
        (vec![report("c2", i64::MAX)], [json!("c2"), Value::Null]),
        (vec![report("c2", i64::MAX), unnamed], [json!("c2"), json!("probe-conductor")]),
    ] {
        api.members.replace(alive);
        for (name, driver) in ["of-c2", "undriven"].into_iter().zip(expected) {
            assert_eq!(api.get(&format!("/v1/nodes/{name}")).await.is(200).body["conductor"], driver);
        }
    }
    for (host, expected) in [("c2", json!(["of-c2"])), ("probe-conductor", json!(["undriven"]))] {
        let nodes = api.get(&format!("/v1/nodes?conductor={host}&fields=name")).await.is(200).body;
        let names: Vec<_> =
            nodes["nodes"].as_array().unwrap().iter().map(|node| node["name"].clone()).collect();
        assert_eq!(json!(names), expected);
    }
    let none = api.get("/v1/nodes?conductor=c1").await.is(200).body;
    assert_eq!(none["nodes"], json!([]));
}
