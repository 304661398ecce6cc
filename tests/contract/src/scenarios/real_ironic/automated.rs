//! Automated cleaning: partition tables and signatures, a reboot, and a step of a vendor. The ramdisk that boots then has
//! another release of the vendor's manager in it, so its agent refuses to go on: what Ironic knows of it is old. Ironic
//! reads the steps again and begins with the first.
//!
//! Ironic reboots after a step that asks for it in automated cleaning alone: it keeps no `reboot_requested` of a step
//! that a user has named.

use super::{Names, agent_logs, step};
use crate::World;
use crate::process::wait_until;
use crate::scenarios::Enrolled;
use crate::vendor;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;

/// What it runs.
pub(super) const STEPS: [&str; 3] = ["erase_devices_metadata", "restart", "greet"];

/// Gives the names of all clean steps that Ironic has learnt from the agent.
pub(super) fn story(world: &World, node: &Enrolled) -> Result<Names> {
    inspected(node).context("inspect")?;
    let advertised = cleaned(world, node).context("provide")?;
    serviced(node).context("service")?;
    Ok(advertised)
}

/// Ironic took the inventory, and its hooks understood it.
fn inspected(node: &Enrolled) -> Result<()> {
    node.verb("inspect", &[])?;
    let seen = node.ensure_rests_in("manageable")?;
    ensure!(seen["properties"]["cpu_arch"] == "x86_64", "properties: {}", seen["properties"]);
    let answer = node.tool.json(&["node", "inventory", &node.uuid])?;
    let inventory = &answer["inventory"];
    ensure!(inventory["disks"][0]["name"] == node.machine.disk.as_str(), "disks: {inventory}");
    ensure!(inventory["interfaces"][0]["mac_address"] == node.machine.mac.as_str(), "NICs: {inventory}");
    ensure!(answer["plugin_data"]["configuration"]["managers"].is_array(), "plugin_data: {answer}");
    Ok(())
}

/// A node in use, with the properties that its machine has.
fn serviced(node: &Enrolled) -> Result<()> {
    let answer = node.tool.json(&["node", "inventory", &node.uuid])?;
    let cpus = format!("cpus={}", answer["inventory"]["cpu"]["count"]);
    node.tool.run(&["node", "set", &node.uuid, "--property", &cpus])?;
    node.verb("manage", &[])?;
    node.verb("adopt", &[])?;
    let steps = json!([step("verify_properties"), step("greet")]);
    node.verb("service", &["--service-steps", &steps.to_string()])?;
    let seen = node.show()?;
    ensure!(seen["provision_state"] == "active" && seen["last_error"].is_null(), "after service: {seen}");
    Ok(())
}

fn cleaned(world: &World, node: &Enrolled) -> Result<Names> {
    let mut advertised = Names::new();
    let before = boots(world)?;
    node.tool.run(&["node", "provide", &node.uuid])?;
    wait_until("the step before the reboot runs", Duration::from_secs(60), || {
        let seen = node.show()?;
        advertised = names(&seen["driver_internal_info"]["agent_cached_clean_steps"]);
        Ok(seen["clean_step"]["step"] == "restart" && seen["provision_state"] == "clean wait")
    })?;
    // The agent that runs knows what it has found when it booted.
    vendor::release(&world.dir, '2')?;
    wait_until("the cleaning ends", Duration::from_secs(120), || {
        Ok(!node.show()?["provision_state"].to_string().contains("clean"))
    })?;
    let seen = node.ensure_rests_in("available")?;
    ensure!(!node.disk.has_gpt()?, "erase_devices_metadata left the GPT");
    ensure!(node.disk.left()?.old_blocks > 0, "erase_devices_metadata is not supposed to erase everything");
    // Before the reboot, after it, and after the one of the second beginning.
    ensure!(boots(world)? - before == 3, "an agent was known {} times more", boots(world)? - before);
    let refusals = agent_logs(&world.dir)?.matches("kind=\"VersionMismatch\"").count();
    ensure!(refusals == 1, "{refusals} steps were refused for their versions");
    let versions = &seen["driver_internal_info"]["hardware_manager_version"];
    ensure!(versions["generic_hardware_manager"].is_string(), "the versions that Ironic keeps: {versions}");
    ensure!(versions[vendor::NAME] == "1.0@222222222222", "the versions that Ironic keeps: {versions}");
    Ok(advertised)
}

/// Of lists of steps by interface.
fn names(cached: &Value) -> Names {
    let lists = cached.as_object().into_iter().flat_map(|lists| lists.values());
    let steps = lists.filter_map(Value::as_array).flatten();
    steps.filter_map(|step| step["step"].as_str()).map(str::to_owned).collect()
}

/// How often an agent has learnt which node it is.
fn boots(world: &World) -> Result<usize> {
    Ok(agent_logs(&world.dir)?.matches("this machine is known").count())
}
