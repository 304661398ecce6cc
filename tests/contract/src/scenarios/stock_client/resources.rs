//! Every resource that belongs to no node's state machine: made, listed, shown, set, unset and deleted.

use super::find;
use crate::stock::Stock;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

const STEPS: &str = r#"[{"interface": "deploy", "step": "erase_devices_metadata", "order": 1}]"#;
const ACTIONS: &str = r#"[{"op": "set-attribute", "args": {"path": "/extra/seen", "value": "yes"}}]"#;
const CONDITIONS: &str = r#"[{"op": "!is-none", "args": {"value": "{inventory[cpu]}"}}]"#;

pub fn run(stock: &Stock) -> Result<()> {
    let chassis = made(stock, "chassis", &["--description", "rack"], &["--description", "rack 7"])?;
    let chassis = text(&chassis, "uuid")?;
    let node = stock.json(&[
        "node",
        "create",
        "--driver",
        "fake-hardware",
        "--name",
        "holder",
        "--chassis-uuid",
        &chassis,
        "--resource-class",
        "stock",
    ])?;
    ensure!(node["chassis_uuid"] == chassis.as_str(), "the chassis of the node: {}", node["chassis_uuid"]);
    let said = stock.refused(&["chassis", "delete", &chassis])?;
    ensure!(said.contains("contains nodes"), "a chassis with a node: {said}");
    let node = text(&node, "uuid")?;
    stock.run(&["node", "manage", &node, "--wait", "60"])?;
    stock.run(&["node", "power", "off", &node, "--power-timeout", "60"])?;

    bonds(stock, &node).context("port groups")?;
    let connector = ["--node", &node, "--type", "iqn", "--connector-id", "iqn.2026-01.example:1"];
    let connector =
        made(stock, "volume connector", &connector, &["--connector-id", "iqn.2026-01.example:2"])?;
    ensure!(connector["connector_id"] == "iqn.2026-01.example:2", "the connector: {connector}");
    let target = ["--node", &node, "--type", "iscsi", "--boot-index", "0", "--volume-id", "v"];
    let target = made(stock, "volume target", &target, &["--volume-id", "w"])?;
    let listed = stock.json(&["volume", "target", "list", "--node", &node])?;
    find(&listed, "uuid", &text(&target, "uuid")?)?;
    for (noun, resource) in [("connector", &connector), ("target", &target)] {
        stock.run(&["volume", noun, "delete", &text(resource, "uuid")?])?;
    }
    allocations(stock, &node).context("allocations")?;

    let runbook =
        made(stock, "runbook", &["--name", "wipe", "--steps", STEPS], &["--description", "all of it"])?;
    ensure!(runbook["steps"][0]["order"] == 1, "the runbook: {runbook}");
    stock.run(&["runbook", "trait", "add", "wipe", "CUSTOM_WIPE"])?;
    stock.run(&["node", "add", "trait", &node, "CUSTOM_WIPE"])?;
    stock.run(&["runbook", "delete", "wipe"])?;
    let rule = ["--actions", ACTIONS, "--conditions", CONDITIONS];
    let rule = made(stock, "inspection rule", &rule, &["--description", "seen"])?;
    stock.run(&["inspection", "rule", "delete", &text(&rule, "uuid")?])?;

    let conductors = stock.json(&["conductor", "list"])?;
    let host = text(&conductors[0], "hostname")?;
    let conductor = stock.json(&["conductor", "show", &host])?;
    ensure!(conductor["alive"] == true && conductor["drivers"].is_array(), "the conductor: {conductor}");
    stock.run(&["node", "set", &node, "--shard", "s1"])?;
    ensure!(find(&stock.json(&["shard", "list"])?, "name", "s1")?["count"] == 1, "one node in the shard");
    stock.run(&["node", "delete", &node])?;
    stock.run(&["chassis", "delete", &chassis])
}

/// Makes one, finds it in the list, sets and unsets a field; what it is then.
fn made(stock: &Stock, noun: &str, new: &[&str], set: &[&str]) -> Result<Value> {
    let words: Vec<_> = noun.split(' ').collect();
    let run = |verb: &str, more: &[&str]| stock.run(&[&words, &[verb][..], more].concat());
    let made = stock.json(&[&words, &["create"][..], new].concat()).with_context(|| noun.to_owned())?;
    let uuid = text(&made, "uuid")?;
    find(&stock.json(&[&words[..], &["list"]].concat())?, "uuid", &uuid)?;
    run("set", &[&[uuid.as_str()], set].concat())?;
    let seen = stock.json(&[&words[..], &["show", &uuid]].concat())?;
    let field = set[0].trim_start_matches('-').replace('-', "_");
    ensure!(seen[&field] == set[1], "{noun}: {field} is {}", seen[&field]);
    if made.get("extra").is_some() {
        run("set", &[&uuid, "--extra", "k=v"])?;
        run("unset", &[&uuid, "--extra", "k"])?;
        let seen = stock.json(&[&words[..], &["show", &uuid]].concat())?;
        ensure!(seen["extra"] == json!({}), "{noun}: extra is {}", seen["extra"]);
    }
    Ok(seen)
}

fn bonds(stock: &Stock, node: &str) -> Result<()> {
    let group = ["--node", node, "--name", "bond0", "--address", "52:54:00:c0:47:10"];
    let group = made(stock, "port group", &group, &["--mode", "802.3ad"])?;
    let uuid = text(&group, "uuid")?;
    let port = stock.json(&["port", "create", "--node", node, "--port-group", &uuid, "52:54:00:c0:47:11"])?;
    let ports = stock.json(&["port", "list", "--port-group", "bond0"])?;
    find(&ports, "uuid", &text(&port, "uuid")?)?;
    let network = ["--physical-network", "physnet1", "52:54:00:c0:47:12"];
    let other = [&["port", "create", "--node", node, "--port-group", &uuid], &network[..]].concat();
    let said = stock.refused(&other)?;
    ensure!(said.contains("cannot become a member of port group"), "a port of another network: {said}");
    let said = stock.refused(&["port", "group", "delete", "bond0"])?;
    ensure!(said.contains("contains ports"), "a port group with a port: {said}");
    stock.run(&["port", "delete", &text(&port, "uuid")?])?;
    stock.run(&["port", "group", "delete", "bond0"])
}

/// One that nothing suits, and one that is given the node.
fn allocations(stock: &Stock, node: &str) -> Result<()> {
    let wish = ["--name", "wish", "--resource-class", "stock"];
    let failed = made(stock, "allocation", &wish, &["--name", "in-vain"])?;
    ensure!(failed["state"] == "error", "no node is available yet: {failed}");
    stock.run(&["allocation", "delete", "in-vain"])?;
    let asked = stock.json(&[&["allocation", "create"], &wish[..]].concat())?;
    ensure!(asked["state"] == "allocating" && asked["node_uuid"].is_null(), "the first answer: {asked}");
    stock.run(&["allocation", "delete", "wish"])?;
    stock.run(&["node", "provide", node, "--wait", "60"])?;
    let given = stock.json(&[&["allocation", "create", "--wait", "60"], &wish[..]].concat())?;
    ensure!(given["state"] == "active" && given["node_uuid"] == node, "the allocation: {given}");
    let seen = stock.json(&["node", "show", node])?;
    for field in ["allocation_uuid", "instance_uuid"] {
        ensure!(seen[field] == given["uuid"], "{field}: {}", seen[field]);
    }
    stock.run(&["allocation", "delete", "wish"])?;
    let seen = stock.json(&["node", "show", node])?;
    ensure!(seen["instance_uuid"].is_null(), "the node is free again: {}", seen["instance_uuid"]);
    stock.run(&["node", "manage", node, "--wait", "60"])
}

fn text(value: &Value, key: &str) -> Result<String> {
    Ok(value[key].as_str().with_context(|| format!("no {key} in {value}"))?.to_owned())
}
