//! What Ironic's own engine made of rules (`fixtures/ironic.json`, recorded by `fixtures/record.py`), and what ours makes
//! of the same. Each case in which the two differ stands in `fixtures/differences.json` with its reason and with what
//! ours does. `ANNEAL_WRITE_DIFFERENCES=1` writes those that have no reason yet there, under "".

use inspection_rules::{Applied, Findings, Level, apply};
use model::{Node, ProvisionState, Resource, ResourceKind, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

const RECORDED: &str = include_str!("fixtures/ironic.json");
const DIFFERENCES: &str = include_str!("fixtures/differences.json");

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn found(world: &Value) -> Findings {
    let given = &world["node"];
    let uuid = given["uuid"].as_str().unwrap().parse().unwrap();
    let mut node = Node::enrolled(uuid, given["driver"].as_str().unwrap(), Timestamp(0));
    node.provision_state = ProvisionState::Inspecting;
    node.name = text(&given["name"]);
    node.driver_info = object(&given["driver_info"]);
    node.properties = object(&given["properties"]);
    node.extra = object(&given["extra"]);
    node.resource_class = text(&given["resource_class"]);
    node.traits = world["traits"].as_array().unwrap().iter().filter_map(text).collect();
    let port = |given: &Value| {
        let address = given["address"].as_str().unwrap().parse().unwrap();
        let port = given["uuid"].as_str().unwrap().parse().unwrap();
        let mut port = Resource::port(port, uuid, address, Timestamp(0));
        for name in ["pxe_enabled", "extra", "local_link_connection"] {
            port.fields.insert(name.to_owned(), given[name].clone());
        }
        port
    };
    Findings {
        node,
        ports: world["ports"].as_array().unwrap().iter().map(port).collect(),
        inventory: world["inventory"].clone(),
        plugin_data: world["plugin_data"].clone(),
    }
}

/// The node as the fixture writes it.
fn node(node: &Node) -> Value {
    json!({
        "uuid": node.uuid, "name": node.name, "driver": node.driver, "driver_info": node.driver_info,
        "properties": node.properties, "extra": node.extra, "instance_info": node.instance_info,
        "resource_class": node.resource_class, "description": node.other.get("description"),
        "owner": node.other.get("owner"), "retired": node.retired, "automated_clean": node.automated_clean,
    })
}

fn port(port: &Resource) -> Value {
    json!({
        "uuid": port.uuid, "address": port.address(), "extra": port.field("extra"), "pxe_enabled": port.pxe_enabled(),
        "physical_network": port.field("physical_network"),
        "local_link_connection": port.field("local_link_connection"),
    })
}

fn changes(before: &Value, after: &Value) -> Value {
    object(after)
        .into_iter()
        .filter(|(key, value)| before.get(key) != Some(value))
        .collect::<Map<_, _>>()
        .into()
}

fn rules(given: &Value) -> Vec<Resource> {
    let rule = |(index, rule): (usize, &Value)| {
        let mut resource =
            Resource::new(ResourceKind::InspectionRule, Uuid::from_u128(index as u128), Timestamp(0));
        resource.fields = object(rule);
        let hit = || json!([{"op": "set-plugin-data", "args": {"path": "hit", "value": true}}]);
        resource.fields.entry("actions").or_insert_with(hit);
        resource
    };
    given.as_array().unwrap().iter().enumerate().map(rule).collect()
}

/// What ours makes of them, in the form of the fixture.
fn ours(given: &Value, before: &Findings) -> Value {
    let Ok(Applied { findings: after, notes }) = apply(&rules(given), before.clone()) else {
        return json!({"fails": true});
    };
    let level = |level| match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
        Level::Critical => "critical",
    };
    let gone = object(&before.plugin_data).into_iter().map(|(key, _)| key);
    let gone: Vec<_> = gone.filter(|key| after.plugin_data.get(key).is_none()).collect();
    let whole = [
        ("node", changes(&node(&before.node), &node(&after.node)), json!({})),
        ("port", changes(&port(&before.ports[0]), &port(&after.ports[0])), json!({})),
        ("traits", json!(after.node.traits), json!(before.node.traits)),
        ("plugin_data", changes(&before.plugin_data, &after.plugin_data), json!({})),
        ("gone", json!(gone), json!([])),
        ("log", notes.iter().map(|note| json!([level(note.level), note.text])).collect(), json!([])),
    ];
    let changed = whole.into_iter().filter(|(_, value, unchanged)| value != unchanged);
    changed.map(|(key, value, _)| (key.to_owned(), value)).collect::<Map<_, _>>().into()
}

#[test]
fn ours_does_what_ironic_does_except_where_it_says_so() {
    let recorded: Value = serde_json::from_str(RECORDED).unwrap();
    let mut differences: BTreeMap<String, BTreeMap<String, Value>> =
        serde_json::from_str(DIFFERENCES).unwrap();
    let before = found(&recorded["world"]);
    let reasons: BTreeMap<String, (String, Value)> = differences
        .iter()
        .flat_map(|(why, cases)| {
            cases.iter().map(move |(rules, ours)| (rules.clone(), (why.clone(), ours.clone())))
        })
        .collect();
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for case in recorded["cases"].as_array().unwrap() {
        let (key, ours) = (case["rules"].to_string(), ours(&case["rules"], &before));
        let mut ironic = case["ironic"].clone();
        if ironic.get("fails").is_some() {
            ironic = json!({"fails": true});
        }
        let agreed = reasons.get(&key).map_or(&ironic, |(_, ours)| ours);
        if *agreed != ours {
            wrong.push(format!("{key}\n  ironic: {}\n  agreed: {agreed}\n  ours:   {ours}", case["ironic"]));
            differences.entry(String::new()).or_default().insert(key.clone(), ours);
        } else if reasons.contains_key(&key) {
            assert_ne!(*agreed, ironic, "no difference any more: {key}");
        }
        seen.insert(key);
    }
    if std::env::var_os("ANNEAL_WRITE_DIFFERENCES").is_some() {
        let text = serde_json::to_string_pretty(&differences).unwrap() + "\n";
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/differences.json"), text)
            .unwrap();
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), seen.len(), wrong.join("\n"));
    assert!(
        reasons.iter().all(|(key, (why, _))| seen.contains(key) && !why.is_empty()),
        "a stray difference"
    );
    // Every operator and every action is among the cases, and both outcomes of most.
    assert!(seen.len() > 2000, "{}", seen.len());
}
