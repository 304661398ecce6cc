//! Ironic and anneal-agent, which serves TLS with its own certificate: inspection, cleaning (first as configured:
//! partition tables and signatures; then everything), a failing step, service.

use super::{Enrolled, start_ironic};
use crate::World;
use crate::agents::Kind;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

pub fn run(world: &World) -> Result<()> {
    let (ironic, network) = start_ironic(world)?;
    let interfaces = &["inspect=agent"];
    let node = Enrolled::new(world, &ironic.endpoint, &network, Kind::Anneal, interfaces)?;
    inspected(&node).context("inspect")?;
    cleaned(&node).context("clean")?;
    failed(&node).context("a failing step")?;
    serviced(&node).context("service")?;
    // Ironic touches the power state twice when it starts a node that is off, so boots are not counted.
    node.bmc.stop()?;
    Ok(())
}

/// Ironic took the inventory, and its hooks understood it.
fn inspected(node: &Enrolled) -> Result<()> {
    node.verb("inspect", &[])?;
    let seen = node.ensure_rests_in("manageable")?;
    ensure!(seen["properties"]["cpu_arch"] == "x86_64", "properties: {}", seen["properties"]);
    let told = node.tool.json(&["node", "inventory", &node.uuid])?;
    let inventory = &told["inventory"];
    ensure!(inventory["disks"][0]["name"] == node.machine.disk.as_str(), "disks: {inventory}");
    ensure!(inventory["interfaces"][0]["mac_address"] == node.machine.mac.as_str(), "NICs: {inventory}");
    ensure!(told["plugin_data"]["configuration"]["managers"].is_array(), "plugin_data: {told}");
    Ok(())
}

fn cleaned(node: &Enrolled) -> Result<()> {
    node.verb("provide", &[])?;
    node.ensure_rests_in("available")?;
    ensure!(!node.disk.has_gpt()?, "erase_devices_metadata left the GPT");
    ensure!(node.disk.left()?.old_blocks > 0, "erase_devices_metadata is not supposed to erase everything");
    node.verb("manage", &[])?;
    node.verb("clean", &["--clean-steps", r#"[{"interface": "deploy", "step": "erase_devices"}]"#])?;
    node.ensure_rests_in("manageable")?;
    node.disk.ensure_zero()
}

/// The properties are wrong, and the step says how; Ironic repeats what the agent said.
fn failed(node: &Enrolled) -> Result<()> {
    node.tool.run(&["node", "set", &node.uuid, "--property", "cpus=4096"])?;
    let steps = json!([verify()]).to_string();
    let failed = node.fails("clean", &["--clean-steps", &steps], "clean failed")?;
    let error = failed["last_error"].as_str().unwrap_or_default();
    for part in ["verify_properties", "cpus", "4096"] {
        ensure!(error.contains(part), "{part:?} is not in last_error: {error}");
    }
    node.tool.run(&["node", "maintenance", "unset", &node.uuid])?;
    node.verb("manage", &[])
}

/// With the right ones the same step succeeds, on a node in use.
fn serviced(node: &Enrolled) -> Result<()> {
    let told = node.tool.json(&["node", "inventory", &node.uuid])?;
    let cpus = format!("cpus={}", told["inventory"]["cpu"]["count"]);
    node.tool.run(&["node", "set", &node.uuid, "--property", &cpus])?;
    node.verb("adopt", &[])?;
    node.verb("service", &["--service-steps", &json!([verify()]).to_string()])?;
    let seen = node.show()?;
    ensure!(seen["provision_state"] == "active" && seen["last_error"].is_null(), "after service: {seen}");
    Ok(())
}

fn verify() -> Value {
    json!({"interface": "deploy", "step": "verify_properties"})
}
