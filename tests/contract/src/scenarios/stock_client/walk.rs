//! A node of the fake driver, which has no agent, walked through every verb of the state machine.

use super::node::Node;
use super::{deployments, find, steps, story};
use crate::World;
use crate::controller::Controller;
use crate::stock::Stock;
use crate::tool::Tool;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// What the fake's inventory means.
const PROPERTIES: [(&str, u64); 3] = [("cpus", 4), ("memory_mb", 8192), ("local_gb", 19)];

pub fn run(world: &World, controller: &Controller, stock: &Stock) -> Result<()> {
    let made = stock.json(&["node", "create", "--driver", "fake-hardware", "--name", "walker"])?;
    ensure!(made["provision_state"] == "enroll", "a new node is {}", made["provision_state"]);
    let uuid = made["uuid"].as_str().context("the new node has a UUID")?.to_owned();
    let node = Node { stock, uuid, dir: world.dir.clone() };

    node.through("manage", &[], "manageable")?;
    inspect(&node)?;
    steps::run(&node, &Tool::anneal(world, &controller.endpoint)).context("manual cleaning")?;
    provide(&node).context("provide")?;
    deployments::run(&node).context("deployments")?;
    service(&node).context("service")?;
    rescue(&node).context("rescue")?;
    undeploy(&node).context("undeploy")?;
    adopt(&node).context("adopt")?;
    history(&node).context("history")?;
    stock.run(&["node", "delete", &node.uuid])
}

/// Inventory and properties; and a node that cannot be inspected.
fn inspect(node: &Node<'_>) -> Result<()> {
    let said = node.stock.refused(&["node", "inventory", "save", &node.uuid])?;
    ensure!(said.contains("404"), "the inventory of a node that was never inspected: {said}");
    let seen = node.through("inspect", &[], "manageable")?;
    for (name, value) in PROPERTIES {
        ensure!(seen["properties"][name] == value, "properties after inspection: {}", seen["properties"]);
    }
    ensure!(seen["properties"]["cpu_arch"] == "x86_64", "cpu_arch: {}", seen["properties"]);
    for field in ["inspection_started_at", "inspection_finished_at"] {
        ensure!(seen[field].is_string(), "{field} is {}", seen[field]);
    }
    let path = node.dir.join("inventory.json");
    let file = path.display().to_string();
    node.stock.run(&["node", "inventory", "save", &node.uuid, "--file", &file])?;
    let saved: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    ensure!(saved["inventory"]["cpu"]["count"] == 4, "the saved inventory: {saved}");
    ensure!(saved["inventory"]["memory"]["physical_mb"] == 8192, "the saved inventory: {saved}");
    ensure!(saved["plugin_data"].is_object(), "the saved inventory: {saved}");

    node.ask(&["set"], &["--inspect-interface", "no-inspect"])?;
    node.fails("inspect", &[], "inspect failed", &["no-inspect"])?;
    node.through("manage", &[], "manageable")?;
    node.ask(&["unset"], &["--inspect-interface"])
}

/// Available; not while it is retired.
fn provide(node: &Node<'_>) -> Result<()> {
    node.ask(&["set"], &["--retired", "--retired-reason", "old"])?;
    let said = node.refused("provide", &[])?;
    ensure!(said.contains("409") && said.contains("retired"), "provide of a retired node: {said}");
    node.ask(&["unset"], &["--retired"])?;
    node.through("provide", &[], "available")?;
    let said = node.refused("set", &["--retired"])?;
    ensure!(said.contains("available") || said.contains("AVAILABLE"), "retiring an available node: {said}");
    Ok(())
}

/// Service steps from a file, with a hold among them; one that fails.
fn service(node: &Node<'_>) -> Result<()> {
    let steps = node.file(
        "service.json",
        &json!([
            {"interface": "bios", "step": "factory_reset"},
            {"interface": "power", "step": "hold"},
            {"interface": "management", "step": "fake_slow", "args": {"seconds": 1.5}},
        ]),
    )?;
    node.ask(&["service"], &["--service-steps", &steps])?;
    let held = node.runs("service", "hold", &["service hold"])?;
    ensure!(held["target_provision_state"] == "active", "target of a hold: {held}");
    let internal = &held["driver_internal_info"];
    ensure!(internal["service_step_index"] == 1, "service_step_index: {internal}");
    ensure!(internal["service_steps"].as_array().is_some_and(|all| all.len() == 3), "{internal}");
    ensure!(held["clean_step"] == json!({}) && held["deploy_step"] == json!({}), "other steps: {held}");
    node.ask(&["unhold"], &[])?;
    node.runs("service", "fake_slow", &["servicing", "service wait"])?;
    node.rests_in("active")?;

    let failing =
        r#"[{"interface": "management", "step": "fake_fail", "args": {"message": "no bolt left"}}]"#;
    let words = ["management.fake_fail", "no bolt left"];
    let failed = node.fails("service", &["--service-steps", failing], "service failed", &words)?;
    ensure!(failed["service_step"]["step"] == "fake_fail", "service_step: {}", failed["service_step"]);
    ensure!(failed["fault"] == "service failure" && failed["maintenance"] == true, "held: {failed}");
    let reset = r#"[{"interface": "bios", "step": "factory_reset"}]"#;
    node.through("service", &["--service-steps", reset], "active")?;

    node.ask(&["service"], &["--service-steps", r#"[{"interface": "power", "step": "hold"}]"#])?;
    node.runs("service", "hold", &["service hold"])?;
    node.ask(&["abort"], &[])?;
    node.failed("service failed", &["By request", "aborted"])?;
    // The way out without a service.
    node.ask(&["abort"], &[])?;
    node.until("active", |node| node["provision_state"] == "active").map(drop)
}

/// The password is neither shown nor kept.
fn rescue(node: &Node<'_>) -> Result<()> {
    const PASSWORD: &str = "open-sesame-77";
    let said = node.refused("unrescue", &[])?;
    ensure!(said.contains("unrescue") && said.contains("active"), "unrescue of an active node: {said}");
    let seen = node.through("rescue", &["--rescue-password", PASSWORD], "rescue")?;
    let info = &seen["instance_info"];
    ensure!(info["hashed_rescue_password"] == "******", "the hash of the password: {info}");
    ensure!(!seen.to_string().contains(PASSWORD), "the password is shown");
    let seen = node.through("unrescue", &[], "active")?;
    ensure!(seen["instance_info"].get("hashed_rescue_password").is_none(), "{}", seen["instance_info"]);
    ensure!(seen["power_state"] == "power on", "an active node is {}", seen["power_state"]);
    Ok(())
}

/// From ACTIVE, retired: cleaned and kept out of service. From RESCUE: cleaned and available.
fn undeploy(node: &Node<'_>) -> Result<()> {
    node.ask(&["set"], &["--retired", "--retired-reason", "worn out"])?;
    let retired = node.stock.json(&["node", "list", "--retired"])?;
    find(&retired, "uuid", &node.uuid)?;
    let seen = node.through("undeploy", &[], "manageable")?;
    ensure!(seen["retired_reason"] == "worn out", "retired_reason: {}", seen["retired_reason"]);
    ensure!(
        seen["instance_info"] == json!({}),
        "instance_info without an instance: {}",
        seen["instance_info"]
    );
    ensure!(seen["power_state"] == "power off", "a torn down node is {}", seen["power_state"]);
    node.ask(&["unset"], &["--retired"])?;
    let seen = node.show()?;
    ensure!(seen["retired"] == false && seen["retired_reason"].is_null(), "unset --retired: {seen}");
    node.through("adopt", &[], "active")?;
    node.through("rescue", &["--rescue-password", "once more"], "rescue")?;
    node.through("undeploy", &[], "available")?;
    Ok(())
}

/// Adoption runs nothing, and is refused to a node that is not manageable.
fn adopt(node: &Node<'_>) -> Result<()> {
    let said = node.refused("adopt", &[])?;
    ensure!(said.contains("adopt") && said.contains("available"), "adopt of an available node: {said}");
    node.through("manage", &[], "manageable")?;
    node.through("adopt", &[], "active")?;
    node.through("undeploy", &[], "available")?;
    node.through("manage", &[], "manageable").map(drop)
}

/// The whole way, and one event by its UUID.
fn history(node: &Node<'_>) -> Result<()> {
    let events = node.stock.json(&["node", "history", "list", &node.uuid, "--long"])?;
    let events = events.as_array().context("a list")?;
    story::ensure_expected(events)?;
    let last = events.last().context("an event")?;
    let uuid = last["uuid"].as_str().context("a UUID")?;
    let event = node.stock.json(&["node", "history", "get", &node.uuid, uuid])?;
    for field in ["event", "severity", "created_at", "event_type"] {
        ensure!(event[field] == last[field], "{field} of {event} and {last}");
    }
    Ok(())
}
