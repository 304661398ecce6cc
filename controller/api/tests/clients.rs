//! What clients that are not ours ask, in their words, where the answer once differed from the real Ironic's. The requests are those
//! of tempest's plug-in for Ironic and of the functional tests of openstacksdk.

use crate::common::Api;
use crate::ramdisk::{beat, cleaning, token};
use crate::rights::callers::User;
use crate::rights::world::World;
use api::{Auth, Settings};
use model::{Basis, Node, PowerState, ProvisionState};
use serde_json::{Value, json};

#[tokio::test]
async fn an_allocation_is_allocating_when_it_is_created_whatever_becomes_of_it() {
    let api = Api::new();
    let node = api.node_with("n", ProvisionState::Available, |node| {
        node.resource_class = Some("baremetal".into());
        node.power_state = Some(PowerState::Off);
    });
    let node = node.await;
    for (name, state, holds, fails) in
        [("first", "active", json!(node.uuid), false), ("second", "error", Value::Null, true)]
    {
        let wish = json!({"name": name, "resource_class": "baremetal"});
        let made = api.at(52, "POST", "/v1/allocations", Some(wish)).await.is(201).body;
        assert_eq!(made["state"], "allocating", "{made}");
        assert_eq!(
            (&made["node_uuid"], &made["last_error"], &made["updated_at"]),
            (&Value::Null, &Value::Null, &Value::Null)
        );
        let ended = api.at(52, "GET", &format!("/v1/allocations/{name}"), None).await.is(200).body;
        assert_eq!(
            (&ended["uuid"], &ended["state"], &ended["node_uuid"]),
            (&made["uuid"], &json!(state), &holds)
        );
        assert_eq!(ended["last_error"].is_string(), fails, "{ended}");
    }
    // The node that a client names is looked at before the answer, in Ironic too.
    api.node("deployed", ProvisionState::Active).await;
    let named = api.post("/v1/allocations", json!({"node": "deployed", "name": "late"})).await.is(201).body;
    assert_eq!(named["state"], "active");
}

#[tokio::test]
async fn the_allocation_of_a_node_that_does_not_exist_is_a_wrong_filter() {
    let api = Api::new();
    let answer = api.get("/v1/nodes/NOSUCH/allocation").await.is(400);
    assert_eq!(answer.fault(), "Node NOSUCH could not be found.");
    api.delete("/v1/nodes/NOSUCH/allocation").await.is(404);
    api.node("n", ProvisionState::Available).await;
    let answer = api.get("/v1/nodes/n/allocation").await.is(404);
    assert_eq!(answer.fault(), "Allocation for node n was not found");
}

#[tokio::test]
async fn a_node_that_is_created_below_1_11_is_available() {
    let cases = [
        (false, "fake-hardware", 10, true),
        (false, "fake-hardware", 11, false),
        (false, "redfish", 10, false),
        (true, "redfish", 10, true),
        (true, "redfish", 11, false),
    ];
    for (setting, driver, minor, is_available) in cases {
        let api = Api::with(Settings { available_below_1_11: setting, ..Settings::default() });
        let made = api.at(minor, "POST", "/v1/nodes", Some(json!({"driver": driver}))).await.is(201).body;
        let what = format!("{driver} at 1.{minor} with {setting}");
        let state = if is_available { "available" } else { "enroll" };
        assert_eq!(made["provision_state"], state, "{what}");
        let node = api.store.nodes().await.unwrap().remove(0);
        assert_eq!(node.basis, is_available.then_some(Basis::CreatedAvailable), "{what}");
        let said = api.store.history(node.uuid).await.unwrap().remove(0).text;
        let says = match is_available {
            true => format!("enroll -> available: enrolled with driver {driver}; basis: created-available"),
            false => format!("enrolled with driver {driver}"),
        };
        assert_eq!(said, says, "{what}");
    }
    let api = Api::new();
    let made = api.at(1, "POST", "/v1/nodes", Some(json!({"driver": "fake-hardware"}))).await.is(201).body;
    assert_eq!(made["provision_state"], Value::Null, "1.1 has no word for it");
}

async fn grouped() -> (Api, String, impl Fn(&str, Value) -> Value) {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Enroll).await;
    let group =
        api.post("/v1/portgroups", json!({"node_uuid": node.uuid, "name": "bond0"})).await.is(201).body;
    let group = group["uuid"].as_str().unwrap().to_owned();
    let (node, of) = (node.uuid, group.clone());
    let port = move |address: &str, network: Value| json!({"node_uuid": node, "address": address, "portgroup_uuid": of, "physical_network": network});
    (api, group, port)
}

const FIRST: &str = "52:54:00:00:00:01";
const SECOND: &str = "52:54:00:00:00:02";

#[tokio::test]
async fn the_ports_of_a_group_have_one_physical_network() {
    let (api, group, port) = grouped().await;
    let network = async || api.get("/v1/portgroups/bond0").await.body["physical_network"].clone();
    assert_eq!(network().await, Value::Null);
    api.post("/v1/ports", port(FIRST, json!("physnet1"))).await.is(201);
    assert_eq!(network().await, "physnet1", "the group adopts that of its first port");
    let before = api.everything().await;
    for other in [json!("physnet2"), Value::Null] {
        let named = other.as_str().unwrap_or("None").to_owned();
        let fault = api.post("/v1/ports", port(SECOND, other)).await.is(409).fault();
        assert_eq!(
            fault,
            format!(
                "Port with physical network {named} cannot become a member of port group {group} which has ports in \
                 physical network physnet1."
            )
        );
    }
    assert_eq!(api.everything().await, before);
    api.post("/v1/ports", port(SECOND, json!("physnet1"))).await.is(201);

    // Into the group by PATCH, and within it.
    let mut alone = port("52:54:00:00:00:03", json!("physnet2"));
    alone.as_object_mut().unwrap().remove("portgroup_uuid");
    let third = api.post("/v1/ports", alone).await.is(201).body;
    let path = format!("/v1/ports/{}", third["uuid"].as_str().unwrap());
    let join = || json!([{"op": "add", "path": "/portgroup_uuid", "value": group}]);
    let to = |network: &str| json!([{"op": "replace", "path": "/physical_network", "value": network}]);
    api.patch(&path, join()).await.is(409);
    api.patch(&path, to("physnet1")).await.is(200);
    api.patch(&path, join()).await.is(200);
    api.at(101, "PATCH", &path, Some(to("physnet2"))).await.is(409);
    let fault = api.at(102, "PATCH", &path, Some(to("physnet2"))).await.is(400).fault();
    assert_eq!(fault, "physical_network cannot be changed while the port belongs to a portgroup.");
    api.patch(&path, json!([{"op": "add", "path": "/extra/x", "value": 1}])).await.is(200);

    // Where a client changes that of the group, its ports follow.
    api.patch("/v1/portgroups/bond0", to("physnet3")).await.is(200);
    let ports = api.get("/v1/portgroups/bond0/ports/detail").await.is(200).body;
    let networks: Vec<_> =
        ports["ports"].as_array().unwrap().iter().map(|port| &port["physical_network"]).collect();
    assert_eq!(networks, ["physnet3"; 3]);
}

#[tokio::test]
async fn a_group_without_ports_has_the_network_that_it_was_given() {
    let (api, _, port) = grouped().await;
    let given = json!([{"op": "add", "path": "/physical_network", "value": "physnet1"}]);
    api.patch("/v1/portgroups/bond0", given).await.is(200);
    api.post("/v1/ports", port(FIRST, json!("physnet2"))).await.is(409);
    api.post("/v1/ports", port(FIRST, json!("physnet1"))).await.is(201);
}

/// `test_microversion_enforcement` of tempest asks with a method that no version has.
#[tokio::test]
async fn a_path_that_is_too_new_is_404_whatever_the_method() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await.uuid;
    for (since, below) in [
        (24, "portgroups"),
        (28, "vifs"),
        (40, "bios"),
        (52, "allocation"),
        (78, "history"),
        (81, "inventory"),
        (83, "children"),
        (86, "firmware"),
        (89, "vmedia"),
    ] {
        let path = format!("/v1/nodes/{node}/{below}");
        for method in ["GET", "PUT", "PATCH"] {
            let answer = api.at(since - 1, method, &path, Some(json!({}))).await;
            assert_eq!(answer.status, 404, "{method} {path} at 1.{}: {}", since - 1, answer.text);
            assert_eq!(answer.header("allow"), None, "{method} {path}");
        }
        let answer = api.at(since, "PUT", &path, Some(json!({}))).await;
        assert_eq!(answer.status, 405, "PUT {path} at 1.{since}: {}", answer.text);
    }
    api.at(23, "GET", &format!("/v1/nodes/{node}/portgroups/detail"), None).await.is(404);
    api.at(22, "PUT", "/v1/portgroups", None).await.is(404);
    api.at(31, "PUT", "/v1/volume/connectors", None).await.is(404);
    api.at(23, "PUT", "/v1/portgroups", None).await.is(405);
}

/// Rows whose `since` Ironic 39 does not enforce: it has no check there.
const UNENFORCED: [&str; 2] =
    ["/v1/nodes/{ident}/management/indicators", "/v1/nodes/{ident}/management/indicators/{indicator}"];

#[tokio::test]
async fn no_row_answers_before_its_version() {
    for row in api::endpoints().into_iter().filter(|row| row.since > 1 && !UNENFORCED.contains(&row.path)) {
        let world = World::new(Auth::NoAuth).await;
        let before = world.api.everything().await;
        let (path, body) = (world.path(&row, false).await, world.body(&row));
        let answer = world.api.at(row.since - 1, row.method.as_str(), &path, body).await;
        let refused = matches!(answer.status, 400 | 404 | 405 | 406);
        assert!(
            refused,
            "{} {} at 1.{}: {} {}",
            row.method,
            row.path,
            row.since - 1,
            answer.status,
            answer.text
        );
        assert_eq!(world.api.everything().await, before, "{} {} changed something", row.method, row.path);
    }
}

#[tokio::test]
async fn the_first_paths_of_ironic_are_served() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await.uuid;
    for (old, new) in [
        (format!("/v1/nodes/states?node_ident={node}"), "/v1/nodes/n/states"),
        (format!("/v1/nodes/states/console/{node}"), "/v1/nodes/n/states/console"),
        (format!("/v1/nodes/management/boot_device?node_ident={node}"), "/v1/nodes/n/management/boot_device"),
        (
            format!("/v1/nodes/management/boot_device/supported?node_ident={node}"),
            "/v1/nodes/n/management/boot_device/supported",
        ),
    ] {
        let (old, new) =
            (api.at(1, "GET", &old, None).await.is(200), api.at(5, "GET", new, None).await.is(200));
        assert_eq!(old.body, new.body);
    }
    let query = format!("node_ident={node}&reason=a%20look");
    api.at(1, "PUT", &format!("/v1/nodes/maintenance?{query}"), None).await.is(202);
    let seen = api.get("/v1/nodes/n").await.body;
    assert_eq!((&seen["maintenance"], &seen["maintenance_reason"]), (&json!(true), &json!("a look")));
    api.at(1, "DELETE", &format!("/v1/nodes/maintenance?node_ident={node}"), None).await.is(202);
    assert_eq!(api.get("/v1/nodes/n").await.body["maintenance"], false);
    let boot = format!("/v1/nodes/management/boot_device?node_ident={node}&boot_device=disk&persistent=true");
    api.at(1, "PUT", &boot, None).await.is(204);
    assert_eq!(api.get("/v1/nodes/n/management/boot_device").await.body["boot_device"], "disk");
    for (path, status) in [
        ("/v1/nodes/states?node_ident=nosuch".to_owned(), 404),
        ("/v1/nodes/states?node_ident=a/b".to_owned(), 400),
        ("/v1/nodes/states".to_owned(), 404),
        (format!("/v1/nodes/{node}/states?node_ident={node}"), 400),
    ] {
        assert_eq!(api.get(&path).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn a_heartbeat_may_name_its_node_in_the_body() {
    let api = Api::new();
    let node = cleaning(&api).await;
    let token = token(&api).await;
    let named = |mut body: Value, ident: Value| {
        body["node_ident"] = ident;
        body
    };
    let send = async |body: Value| api.at(68, "POST", "/v1/heartbeat", Some(body)).await;
    for (body, says) in [
        (
            json!({"node_ident": node.uuid, "callback_url": "http://192.0.2.1:9999"}),
            "Agent token is required",
        ),
        (beat(&token), "Missing mandatory parameter: node_ident"),
        (named(beat("wrong"), json!(node.uuid)), "Invalid or missing agent token received."),
        (named(beat(&token), json!("nosuch")), "Invalid or missing agent token received."),
    ] {
        let fault = send(body).await.is(400).fault();
        assert!(fault.starts_with(says), "{fault}");
    }
    api.at(21, "POST", "/v1/heartbeat", Some(named(beat(&token), json!(node.uuid)))).await.is(404);
    assert!(api.store.contact(node.uuid).await.unwrap().last_heartbeat_at.is_none());
    send(named(beat(&token), json!(node.uuid))).await.is(202);
    assert!(api.store.contact(node.uuid).await.unwrap().last_heartbeat_at.is_some());
    // It is no way around the path's own form.
    api.at(68, "POST", "/v1/heartbeat/n", Some(named(beat(&token), json!("n")))).await.is(400);
}

#[tokio::test]
async fn inspection_rules_of_clients_are_stored_as_they_come() {
    let api = Api::new();
    for (conditions, actions) in [
        (
            json!([{"op": "eq", "args": ["node:memory_mb", 4096], "multiple": "all"}]),
            json!([{"op": "set-attribute", "args": ["/driver", "idrac"]}]),
        ),
        (
            json!([{"op": "gt", "args": ["node:memory_mb", 4096], "multiple": "all"}]),
            json!([{"op": "set-attribute", "args": {"path": "/driver", "value": "fake"}}]),
        ),
        (
            json!([{
                "op": "eq",
                "args": ["{inventory.system.product_name}", "{item}"],
                "loop": ["product_name_1", "product_name_2"],
                "multiple": "any",
            }]),
            json!([{
                "op": "set-attribute",
                "args": ["{item[path]}", "{item[value]}"],
                "loop": [{"path": "/driver_info/ipmi_address", "value": "{inventory[bmc_address]}"}],
            }]),
        ),
        (
            json!([{"op": "eq", "args": ["{{ inventory.cpu.count }}", 8]}]),
            json!([
                {"op": "set-attribute", "args": ["{{ /properties/cpu_model }}", "cpu_xyz"]},
                {"op": "log", "args": ["CPU model updated via rule."]},
            ]),
        ),
    ] {
        let rule = json!({"conditions": conditions, "actions": actions});
        let made = api.post("/v1/inspection_rules", rule).await.is(201).body;
        assert_eq!((&made["conditions"], &made["actions"]), (&conditions, &actions));
        let path = format!("/v1/inspection_rules/{}", made["uuid"].as_str().unwrap());
        let seen = api.get(&path).await.is(200).body;
        assert_eq!((&seen["conditions"], &seen["actions"]), (&conditions, &actions));
    }
    // What is given by name is still looked at.
    for bad in [
        json!({"actions": [{"op": "set-attribute", "args": ["/provision_state", "active"]}]}),
        json!({"actions": [{"op": "set-attribute", "args": {"path": "/provision_state", "value": "active"}}]}),
        json!({
            "conditions": [{"op": "eq", "args": {"values": "x"}}],
            "actions": [{"op": "fail", "args": {"msg": "x"}}],
        }),
    ] {
        api.post("/v1/inspection_rules", bad).await.is(400);
    }
}

fn error(node: &Node) -> &str {
    node.last_error.as_deref().unwrap_or_default()
}

#[tokio::test]
async fn virtual_media_that_the_driver_refuses_are_in_last_error() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    let path = format!("/v1/nodes/{}/vmedia", node.uuid);
    let media = json!({"device_type": "cdrom", "image_url": "http://image"});
    let lacks =
        |what: &str| format!("Driver fake-hardware does not support {what} (disabled or not implemented).");
    api.at(89, "POST", &path, Some(media.clone())).await.is(204);
    let seen = api.store_node(&node).await;
    let says =
        format!("Could not attach device cdrom to node {}: {}", node.uuid, lacks("attach_virtual_media"));
    assert_eq!(error(&seen), says);
    let last = api.store.history(node.uuid).await.unwrap().pop().unwrap();
    assert_eq!((last.text, last.severity), (says, model::history::Severity::Error));
    for (query, named) in [("", "disk, cdrom, floppy"), ("?device_types=cdrom", "cdrom")] {
        api.at(89, "DELETE", &format!("{path}{query}"), None).await.is(204);
        let says = format!(
            "Could not detach device(s) {named} from node {}: {}",
            node.uuid,
            lacks("detach_virtual_media")
        );
        assert_eq!(error(&api.store_node(&node).await), says);
    }
    // A success ends what stood there.
    let able = api
        .node_with("able", ProvisionState::Manageable, |node| {
            node.driver = "redfish".into();
            node.driver_info.insert("redfish_address".into(), "https://bmc".into());
            node.last_error = Some("earlier".into());
        })
        .await;
    api.post("/v1/nodes/able/vmedia", media.clone()).await.is(204);
    assert_eq!(api.store_node(&able).await.last_error, None);
    // Without an address there is no BMC to ask, now or later.
    api.node_with("bare", ProvisionState::Manageable, |node| node.driver = "redfish".into()).await;
    let fault = api.post("/v1/nodes/bare/vmedia", media).await.is(400).fault();
    assert_eq!(fault, "missing redfish_address");
    api.post("/v1/nodes/nosuch/vmedia", json!({"device_type": "cdrom", "image_url": "http://image"}))
        .await
        .is(404);
}

/// An old path is judged as the one that it stands for.
#[tokio::test]
async fn the_first_paths_are_guarded_as_those_of_the_table() {
    let world = World::guarded().await;
    let node = world.node.uuid;
    for (method, old, new) in [
        ("GET", format!("/v1/nodes/states?node_ident={node}"), format!("/v1/nodes/{node}/states")),
        ("GET", format!("/v1/nodes/states/{node}"), format!("/v1/nodes/{node}/states")),
        ("PUT", format!("/v1/nodes/maintenance?node_ident={node}"), format!("/v1/nodes/{node}/maintenance")),
    ] {
        assert_eq!(world.ask(method, &old, None, None).await.status, 401, "{old}");
        let mut seen = Vec::new();
        for user in User::all() {
            let statuses = (
                world.ask(method, &old, Some(&user.header()), None).await.status,
                world.ask(method, &new, Some(&user.header()), None).await.status,
            );
            assert_eq!(statuses.0, statuses.1, "{method} {old} by {}", user.name());
            seen.push(statuses.0);
        }
        assert!(seen.contains(&404) && seen.iter().any(|status| *status < 300), "{seen:?}");
    }
}
