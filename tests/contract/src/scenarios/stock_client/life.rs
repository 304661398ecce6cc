//! A node with an agent and a disk: enrolled, edited, switched on and off, cleaned, forgotten.

use super::super::{CLEANING, MAC};
use super::find;
use crate::World;
use crate::agents::{Kind, Machine};
use crate::bmc::Bmc;
use crate::controller::Controller;
use crate::disk::LoopDisk;
use crate::stock::Stock;
use crate::tool::Tool;
use anyhow::{Context, Result, ensure};
use serde_json::Value;

const ERASE: &str = r#"[{"interface": "deploy", "step": "erase_devices"}]"#;

pub fn run(world: &World, controller: &Controller, stock: &Stock) -> Result<()> {
    let disk = LoopDisk::new(&world.dir, "disk")?;

    let drivers = stock.json(&["driver", "list"])?;
    for driver in ["fake-hardware", "ipmi", "redfish"] {
        find(&drivers, "name", driver)?;
    }
    let uuid = enrol(stock)?;
    let node = uuid.as_str();
    edit(stock, node)?;
    let machine = Machine::new(world, Kind::Anneal, &controller.network, MAC, &disk.device);
    let bmc = Bmc::follow(Tool::anneal(world, &controller.endpoint), uuid.clone(), machine);

    let said = stock.refused(&["node", "provide", node])?;
    ensure!(said.contains("provide") && said.contains("enroll"), "provide of an enrolled node: {said}");
    stock.run(&["node", "manage", node, "--wait", "60"])?;
    expect(stock, node, "provision_state", "manageable")?;
    let verdicts = stock.json(&["node", "validate", node])?;
    let power = find(&verdicts, "Interface", "power")?;
    ensure!(power["Result"] == true, "validate: {power}");
    power_and_maintenance(stock, node)?;

    stock.run(&["node", "provide", node, "--wait", CLEANING])?;
    expect(stock, node, "provision_state", "available")?;
    expect(stock, node, "power_state", "power off")?;
    disk.ensure_zero()?;

    stock.run(&["node", "manage", node])?;
    stock.run(&["node", "clean", node, "--clean-steps", ERASE])?;
    wait_for(stock, node, "provision_state", "manageable")?;
    expect(stock, node, "last_error", Value::Null)?;
    let said = stock.refused(&["node", "clean", node, "--clean-steps", r#"[{"interface": "deploy"}]"#])?;
    ensure!(said.contains("step"), "a clean step without a name: {said}");

    stock.run(&["node", "delete", node])?;
    bmc.stop()?;
    let left = stock.json(&["node", "list"])?;
    ensure!(left == Value::Array(vec![]), "nodes after the last was deleted: {left}");
    let left = stock.json(&["port", "list"])?;
    ensure!(left == Value::Array(vec![]), "ports after the last node was deleted: {left}");
    Ok(())
}

/// A node and its port; what is wrong is refused.
fn enrol(stock: &Stock) -> Result<String> {
    let mut line = vec!["node", "create", "--driver", "fake-hardware", "--deploy-interface", "direct"];
    line.extend(["--name", "stock", "--property", "memory_mb=1024"]);
    let made = stock.json(&line)?;
    let uuid = made["uuid"].as_str().context("the new node has a UUID")?.to_owned();
    ensure!(made["provision_state"] == "enroll", "a new node is {}", made["provision_state"]);
    let said = stock.refused(&["node", "create", "--driver", "nosuch"])?;
    ensure!(said.contains("nosuch"), "an unknown driver: {said}");

    let port = stock.json(&["port", "create", MAC, "--node", &uuid])?;
    ensure!(port["address"] == MAC && port["node_uuid"] == uuid.as_str(), "the new port: {port}");
    let said = stock.refused(&["port", "create", MAC, "--node", &uuid])?;
    ensure!(said.contains(MAC), "a second port of one MAC address: {said}");
    find(&stock.json(&["port", "list"])?, "address", MAC)?;

    let nodes = stock.json(&["node", "list"])?;
    let row = find(&nodes, "uuid", &uuid)?;
    ensure!(row["provision_state"] == "enroll" && row["name"] == "stock", "node list: {nodes}");
    let said = stock.refused(&["node", "show", "nosuch"])?;
    ensure!(said.contains("nosuch") && said.contains("404"), "an unknown node: {said}");
    Ok(uuid)
}

/// `set` and `unset`.
fn edit(stock: &Stock, node: &str) -> Result<()> {
    stock.run(&["node", "set", node, "--name", "renamed", "--extra", "rack=r7", "--property", "cpus=4"])?;
    let seen = stock.json(&["node", "show", "renamed"])?;
    ensure!(seen["uuid"] == node, "found by its new name: {}", seen["uuid"]);
    ensure!(seen["extra"]["rack"] == "r7", "extra: {}", seen["extra"]);
    stock.run(&["node", "unset", node, "--extra", "rack"])?;
    let seen = stock.json(&["node", "show", node])?;
    ensure!(seen["extra"].get("rack").is_none(), "extra: {}", seen["extra"]);
    stock.run(&["node", "set", node, "--retired", "--retired-reason", "old"])?;
    let retired = stock.json(&["node", "list", "--retired"])?;
    find(&retired, "uuid", node)?;
    stock.run(&["node", "unset", node, "--retired"])
}

fn power_and_maintenance(stock: &Stock, node: &str) -> Result<()> {
    let boot = stock.json(&["node", "boot", "device", "show", node])?;
    ensure!(boot["boot_device"] == "pxe" && boot["persistent"] == false, "the boot device: {boot}");
    stock.run(&["node", "power", "on", node, "--power-timeout", "30"])?;
    wait_for(stock, node, "power_state", "power on")?;
    stock.run(&["node", "power", "off", node])?;
    wait_for(stock, node, "power_state", "power off")?;
    stock.run(&["node", "maintenance", "set", node, "--reason", "a look inside"])?;
    let seen = stock.json(&["node", "show", node])?;
    ensure!(
        seen["maintenance"] == true && seen["maintenance_reason"] == "a look inside",
        "maintenance set: {} {}",
        seen["maintenance"],
        seen["maintenance_reason"]
    );
    stock.run(&["node", "maintenance", "unset", node])?;
    let seen = stock.json(&["node", "show", node])?;
    ensure!(seen["maintenance"] == false, "maintenance unset: {}", seen["maintenance"]);
    Ok(())
}

fn expect(stock: &Stock, node: &str, field: &str, value: impl Into<Value>) -> Result<()> {
    let (seen, value) = (stock.json(&["node", "show", node])?, value.into());
    ensure!(
        seen[field] == value,
        "{field} is {}, not {value}; last_error {}",
        seen[field],
        seen["last_error"]
    );
    Ok(())
}

fn wait_for(stock: &Stock, node: &str, field: &str, value: &str) -> Result<()> {
    let limit = std::time::Duration::from_secs(60);
    crate::process::wait_until(&format!("{field} becomes {value:?}"), limit, || {
        Ok(stock.json(&["node", "show", node])?[field] == value)
    })
}
