//! Inspection rules: what they see and when, and that all of an inspection is stored or none of it.

use crate::situation::NOW;
use crate::world::World;
use conductor::Settings;
use conductor::decision::{Action, Decision, Outcome, Rules};
use conductor::stages::{apply_outcome, decide};
use model::abilities::Inspect;
use model::boot::Boot;
use model::interface::AddPorts;
use model::run::Cursor;
use model::{Contact, Inventory, ProvisionState, Resource, ResourceKind, Run, RunKind, Verb};
use serde_json::{Value, json};
use store::{ResourceWrite, prelude::*};
use uuid::Uuid;

fn rule(fields: Value) -> Resource {
    let mut rule = Resource::new(ResourceKind::InspectionRule, Uuid::new_v4(), NOW);
    rule.fields = fields.as_object().unwrap().clone();
    rule
}

fn set(path: &str, value: &str) -> Value {
    json!({"op": "set-attribute", "args": {"path": path, "value": value}})
}

/// What the BMC reports is subject to the same rules; what was made by hardware comes first.
#[tokio::test(start_paused = true)]
async fn rules_apply_to_what_the_bmc_reports() {
    let world = World::new().await;
    world.abilities.lock().unwrap().inspect = Inspect::Bmc;
    let seen = rule(
        json!({"actions": [set("extra/seen", "{node.properties[memory_mb]}"), set("properties/memory_mb", "7")]}),
    );
    let failing = rule(
        json!({"priority": 1, "actions": [set("extra/half", "x"), {"op": "fail", "args": {"msg": "no"}}]}),
    );
    for rule in [&seen, &failing] {
        world.store.write_resource(ResourceWrite::Create(rule.clone()), None, vec![]).await.unwrap();
    }
    let _conductor = world.conductor(Settings::default());
    world.verb(Verb::Inspect).await;
    let node = world.until_state(ProvisionState::InspectFail).await;
    assert!(node.last_error.unwrap().contains(&failing.uuid.to_string()));
    assert!(node.extra.is_empty() && node.properties.is_empty(), "{:?} {:?}", node.extra, node.properties);
    let kept = world.store.inventory(world.node).await.unwrap().unwrap();
    assert!(kept.source == "redfish" && !kept.ruled, "so that it can be seen why");

    world
        .store
        .write_resource(ResourceWrite::Delete(failing.kind, failing.uuid, 1), None, vec![])
        .await
        .unwrap();
    world.verb(Verb::Inspect).await;
    let node = world.until_state(ProvisionState::Manageable).await;
    assert_eq!((&node.extra["seen"], &node.properties["memory_mb"]), (&json!("512"), &json!("7")));
}

/// Whatever rules change is in the one change that also says that the inspection is over: there is no state between.
#[expect(clippy::too_many_lines, reason = "one inspection from its first request to its last write")]
#[test]
fn what_rules_change_is_one_change() {
    let mut node = crate::situation::node(ProvisionState::InspectWait, Cursor::AwaitInventory, 0);
    let mut run = Run::new(RunKind::Inspect, NOW);
    (run.cursor, run.booted) = (Cursor::AwaitInventory, true);
    node.run = Some(run);
    let port = |mac: &str| Resource::port(Uuid::new_v4(), node.uuid, mac.parse().unwrap(), NOW);
    let ports = vec![port("52:54:00:00:00:01"), port("52:54:00:00:00:02")];
    let second = ports[1].clone();
    let actions = json!([
        {"op": "add-trait", "args": {"name": "CUSTOM_X"}},
        {"op": "set-plugin-data", "args": {"path": "x", "value": 1}},
        {"op": "set-port-attribute", "args": {"port_id": second.uuid, "path": "extra/x", "value": 1}},
        {"op": "log", "args": {"msg": "seen", "level": "warning"}},
    ]);
    let mut snapshot = crate::situation::snapshot(node, Contact::default(), NOW);
    let inventory = Inventory {
        inventory: json!({}),
        plugin_data: json!({}),
        at: NOW,
        source: "agent".into(),
        ruled: false,
    };
    snapshot.inventory = Some(inventory.clone());
    let drivers = vec!["fake-hardware".to_owned(), "redfish".to_owned()];
    snapshot.rules = Rules { rules: vec![rule(json!({"actions": actions}))], ports, drivers };
    let settings = Settings::default();
    let Decision::Record(change) = decide(&snapshot, &settings) else { panic!("nothing is recorded") };
    assert_eq!(change.node.run.as_ref().unwrap().cursor, Cursor::TearDown, "an inspection has no steps");
    assert!(change.node.traits.contains("CUSTOM_X"));
    assert!(change.events.iter().any(|event| event.text == "inspection rule: seen"), "{:?}", change.events);
    let inspected = change.inspected.as_ref().expect("an inventory and ports");
    assert_eq!(inspected.inventory.plugin_data, json!({"x": 1}));
    assert!(inspected.inventory.ruled && inspected.inventory.at == NOW);
    let [changed] = inspected.ports.as_slice() else { panic!("{:?}", inspected.ports) };
    assert_eq!((changed.uuid, changed.version, changed.updated_at), (second.uuid, second.version, Some(NOW)));
    assert_eq!(changed.field("extra")["x"], 1);
    assert!(!change.is_of_the_node_alone());

    // Ports that the inspection finds are there for rules as the others are, and stored with the rest.
    let mut with_nic = snapshot.clone();
    let nics = json!([
        {"name": "eno1", "mac_address": "52:54:00:00:00:01"},
        {"name": "eno2", "mac_address": "52:54:00:00:00:03"},
    ]);
    with_nic.inventory = Some(Inventory {
        inventory: json!({"interfaces": nics, "boot": {"pxe_interface": "52:54:00:00:00:03"}}),
        ..inventory.clone()
    });
    let new = Uuid::new_v5(&with_nic.node.run.as_ref().unwrap().id, b"52:54:00:00:00:03");
    let first =
        json!([{"op": "set-port-attribute", "args": {"port_id": new, "path": "extra/x", "value": 1}}]);
    with_nic.rules.rules = vec![rule(json!({"actions": first}))];
    let fetched = vec!["52:54:00:00:00:03".parse().unwrap()];
    with_nic.contact.boot = Some(Boot { macs: fetched, ..Boot::fresh() });
    for (add, made) in [(AddPorts::Pxe, 1), (AddPorts::Disabled, 0)] {
        if made == 0 {
            with_nic.rules.rules.clear();
        }
        let settings = Settings { inspection_add_ports: add, ..Settings::default() };
        let Decision::Record(change) = decide(&with_nic, &settings) else { panic!("nothing is recorded") };
        let inspected = change.inspected.as_ref().expect("ports");
        assert!(inspected.ports.iter().all(|port| !port.pxe_enabled()));
        assert_eq!(
            (inspected.ports.len(), inspected.new_ports.len(), inspected.inventory.ruled),
            (2, made, false)
        );
        for port in &inspected.new_ports {
            assert_eq!((port.address(), port.pxe_enabled()), ("52:54:00:00:00:03", true));
            assert_eq!((port.uuid, port.node), (new, Some(change.node.uuid)));
            assert_eq!(port.field("extra")["x"], 1);
        }
        let text = "interfaces become ports, unless a port has their address: 52:54:00:00:00:03";
        assert_eq!(change.events.iter().filter(|event| event.text == text).count(), made);
    }

    // Plugin data may not grow beyond the stored maximum: nothing is stored of it, and the inspection is not retried.
    let grow = json!({"op": "set-plugin-data", "args": {"path": "x{item}", "value": "{inventory}"}, "loop": [1, 2, 3]});
    let large =
        Inventory { inventory: json!({"x": "y".repeat(store::inventory::MAX / 3)}), ..inventory.clone() };
    snapshot.inventory = Some(large);
    snapshot.rules.rules = vec![rule(json!({"actions": [grow]}))];
    let Decision::Record(change) = decide(&snapshot, &settings) else { panic!("nothing is recorded") };
    assert_eq!(change.node.provision_state, ProvisionState::InspectFail);
    assert!(change.node.last_error.unwrap().contains("more than"), "too large");
    assert_eq!(change.inspected, None);

    // So for a BMC that reports more than the stored maximum.
    snapshot.rules = Rules::default();
    snapshot.node.enter(ProvisionState::Inspecting, None, NOW);
    snapshot.node.run.as_mut().unwrap().cursor = Cursor::AskInventory;
    let report = Inventory { inventory: json!("y".repeat(store::inventory::MAX)), ..inventory };
    let change = apply_outcome(&snapshot, &Action::InspectBmc, Outcome::Inventory(report), &settings);
    assert_eq!(change.node.provision_state, ProvisionState::InspectFail);
    assert_eq!(change.inspected, None);
}

/// The situation in which an agent's report is there and these actions are the only rule.
fn reported(actions: serde_json::Value) -> conductor::decision::Snapshot {
    let mut node = crate::situation::node(ProvisionState::InspectWait, Cursor::AwaitInventory, 0);
    let mut run = Run::new(RunKind::Inspect, NOW);
    (run.cursor, run.booted) = (Cursor::AwaitInventory, true);
    node.run = Some(run);
    node.driver = "fake-hardware".into();
    for (interface, implementation) in [("boot", "fake"), ("inspect", "agent")] {
        node.interfaces.insert(format!("{interface}_interface"), implementation.into());
    }
    let mut snapshot = crate::situation::snapshot(node, Contact::default(), NOW);
    let (inventory, plugin_data) = (json!({}), json!({}));
    snapshot.inventory =
        Some(Inventory { inventory, plugin_data, at: NOW, source: "agent".into(), ruled: false });
    let drivers = vec!["fake-hardware".to_owned(), "redfish".to_owned()];
    snapshot.rules = Rules { rules: vec![rule(json!({"actions": actions}))], ports: Vec::new(), drivers };
    snapshot
}

#[test]
fn a_rule_chooses_a_driver_that_is_enabled() {
    let choose = |driver: &str| {
        let actions = json!([{"op": "set-attribute", "args": ["/driver", driver]}]);
        let Decision::Record(change) = decide(&reported(actions), &Settings::default()) else {
            panic!("nothing is recorded")
        };
        change.node
    };
    let node = choose("redfish");
    assert_eq!((node.driver.as_str(), node.last_error), ("redfish", None));
    // What both drivers have stays, the rest are defaults of the new one.
    let kept: Vec<_> = node.interfaces.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(kept, [("inspect_interface", "agent")]);
    for strange in ["idrac", "ipmi"] {
        let node = choose(strange);
        assert_eq!(node.driver, "fake-hardware");
        let says = format!(
            "inspection rules set driver {strange:?}, which is not enabled; enabled are fake-hardware, redfish"
        );
        assert!(
            node.last_error.as_deref().is_some_and(|error| error.contains(&says)),
            "{:?}",
            node.last_error
        );
    }
}
