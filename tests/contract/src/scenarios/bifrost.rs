//! Bifrost's dynamic inventory, which Ansible asks for the hosts that Bifrost deploys.

use crate::World;
use crate::clouds;
use crate::controller::Controller;
use crate::process::check;
use crate::tool::Tool;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::process::Command;

pub fn run(world: &World) -> Result<()> {
    const MACS: [&str; 2] = ["52:54:00:c0:47:51", "52:54:00:c0:47:52"];
    let controller = Controller::start(world)?;
    let tool = Tool::anneal(world, &controller.endpoint);
    for (name, mac) in ["listed", "deployed"].into_iter().zip(MACS) {
        let line = ["node", "create", "--driver", "fake-hardware", "--name", name, "--mac", mac];
        tool.run(&line)?;
    }
    tool.run(&["node", "manage", "deployed", "--wait", "60"])?;
    tool.run(&["node", "adopt", "deployed", "--wait", "60"])?;

    let mut inventory = Command::new(world.peers.program("bifrost", "python3"));
    inventory.args(["-m", "bifrost.inventory", "--list"]).current_dir(&world.dir);
    inventory.env("BIFROST_INVENTORY_SOURCE", "ironic").env("OS_CLOUD", "anneal");
    inventory.env("OS_CLIENT_CONFIG_FILE", clouds::write(world, &controller, &["anneal"])?);
    let output = check(&mut inventory).context("bifrost.inventory")?;
    let all: Value = serde_json::from_slice(&output.stdout)?;

    let mut hosts: Vec<&str> =
        all["baremetal"]["hosts"].as_array().into_iter().flatten().flat_map(Value::as_str).collect();
    hosts.sort_unstable();
    ensure!(hosts == ["deployed", "listed"], "the group baremetal: {}", all["baremetal"]);
    for (name, state, mac) in [("listed", "enroll", MACS[0]), ("deployed", "active", MACS[1])] {
        let (host, node) = (&all["_meta"]["hostvars"][name], tool.json(&["node", "show", name])?);
        ensure!(host["id"] == node["uuid"], "{name} has the id {}", host["id"]);
        ensure!(host["provision_state"] == state, "{name} is {}", host["provision_state"]);
        ensure!(host["nics"] == json!([{"mac": mac}]), "{name} has the ports {}", host["nics"]);
    }
    Ok(())
}
