//! The scenarios, one a file.

mod agent_lost;
mod agent_steps;
mod agent_trust;
mod ansible;
mod bifrost;
mod calibration;
mod clients;
mod power_races;
mod real_agent;
mod real_ironic;
mod replay;
mod schemathesis;
mod stock_client;
mod sushy_tools;

use crate::World;
use crate::agents::{Kind, Machine};
use crate::bmc::Bmc;
use crate::disk::LoopDisk;
use crate::ironic::Ironic;
use crate::network::Network;
use crate::process::wait_until;
use crate::tool::Tool;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::time::Duration;

/// MAC address of the one node a scenario has.
const MAC: &str = "52:54:00:c0:47:01";
/// Seconds that any one cleaning may take.
const CLEANING: &str = "240";

/// How long anything but a verb may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// A named scenario.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// The story.
    pub run: fn(&World) -> Result<()>,
    /// Runs when nothing is named.
    by_default: bool,
    /// Runs at the same time as others.
    pub parallel: bool,
}

const ALL: [Scenario; 20] = [
    Scenario { name: "stock_client", run: stock_client::run, by_default: true, parallel: false },
    Scenario { name: "openstacksdk", run: clients::openstacksdk, by_default: true, parallel: true },
    Scenario { name: "noauth", run: clients::noauth, by_default: true, parallel: true },
    Scenario { name: "metal3", run: clients::metal3, by_default: true, parallel: true },
    Scenario { name: "metalsmith", run: clients::metalsmith, by_default: true, parallel: true },
    Scenario { name: "nova", run: clients::nova, by_default: true, parallel: true },
    Scenario { name: "ansible", run: ansible::page, by_default: true, parallel: true },
    Scenario { name: "bifrost", run: bifrost::run, by_default: true, parallel: true },
    Scenario { name: "sushy_tools", run: sushy_tools::run, by_default: true, parallel: true },
    Scenario { name: "replay", run: replay::run, by_default: true, parallel: true },
    Scenario { name: "real_agent", run: real_agent::run, by_default: true, parallel: true },
    Scenario { name: "agent_steps", run: agent_steps::run, by_default: true, parallel: true },
    Scenario { name: "agent_lost", run: agent_lost::run, by_default: true, parallel: true },
    Scenario { name: "agent_trust", run: agent_trust::run, by_default: true, parallel: true },
    Scenario { name: "real_ironic", run: real_ironic::run, by_default: true, parallel: false },
    Scenario { name: "power_races", run: power_races::run, by_default: true, parallel: true },
    Scenario { name: "schemathesis", run: schemathesis::run, by_default: true, parallel: true },
    Scenario { name: "ansible_modules", run: ansible::modules, by_default: false, parallel: true },
    Scenario { name: "sdk_suite", run: clients::sdk_suite, by_default: false, parallel: true },
    Scenario { name: "calibration", run: calibration::run, by_default: false, parallel: false },
];

/// The scenarios named, or those that run by default and have `filter` in their name.
pub fn choose(names: &[String], filter: &str) -> Result<Vec<&'static Scenario>> {
    if names.is_empty() {
        return Ok(ALL.iter().filter(|one| one.by_default && one.name.contains(filter)).collect());
    }
    let find = |name: &String| match ALL.iter().find(|scenario| scenario.name == name) {
        Some(scenario) => Ok(scenario),
        None => {
            bail!("no scenario {name:?}; there are {}", ALL.map(|scenario| scenario.name).join(", "))
        }
    };
    names.iter().map(find).collect()
}

/// Starts an Ironic of the scenario's own, with these settings in addition to the usual ones; with it what its nodes boot.
fn start_ironic(world: &World, settings: &str) -> Result<(Ironic, Network)> {
    let ironic = Ironic::start(&world.peers, &world.dir, settings, |endpoint| {
        let drivers = Tool::anneal(world, endpoint).json(&["driver", "list"]).unwrap_or_default();
        drivers.as_array().is_some_and(|list| list.iter().any(|one| one["name"] == "fake-hardware"))
    })?;
    let network = Network::Ironic { api: ironic.endpoint.clone() };
    Ok((ironic, network))
}

/// A step of an agent, with arguments.
fn step(name: &str, args: &Value) -> Value {
    json!({"interface": "deploy", "step": name, "args": args})
}

/// The last run of a node.
fn run(node: &Value) -> &Value {
    &node["driver_internal_info"]["anneal"]["run"]
}

/// What a node complains of.
fn last_error(node: &Value) -> &str {
    node["last_error"].as_str().unwrap_or_default()
}

/// A node enrolled with Anneal's command line, with a machine behind it.
struct Enrolled {
    tool: Tool,
    uuid: String,
    disk: LoopDisk,
    machine: Machine,
    bmc: Bmc,
}

impl Enrolled {
    /// Enrols a node at `endpoint` with these interfaces (`inspect=agent`) whose machine boots `kind`, and takes it
    /// under management.
    fn new(
        world: &World,
        endpoint: &str,
        network: &Network,
        kind: Kind,
        interfaces: &[&str],
    ) -> Result<Self> {
        let disk = LoopDisk::new(&world.dir, "disk")?;
        Self::called("contract", MAC, disk, world, endpoint, network, kind, interfaces)
    }

    /// The same for a node of this name, MAC address and disk.
    #[allow(clippy::too_many_arguments, reason = "a node is that much")]
    fn called(
        name: &str,
        mac: &str,
        disk: LoopDisk,
        world: &World,
        endpoint: &str,
        network: &Network,
        kind: Kind,
        interfaces: &[&str],
    ) -> Result<Self> {
        let tool = Tool::anneal(world, endpoint);
        let mut line = vec!["node", "create", "--driver", "fake-hardware", "--name", name, "--mac", mac];
        // Off long enough to be seen off.
        line.extend(["--driver-info", "fake_power_latency_ms=200"]);
        line.extend(interfaces.iter().flat_map(|interface| ["--interface", *interface]));
        if kind == Kind::Ipa {
            line.extend(["--property", "agent_kind=ironic-python-agent"]);
        }
        let node = tool.json(&line)?;
        let uuid = node["uuid"].as_str().context("the new node has a UUID")?.to_owned();
        let machine = Machine::new(world, kind, network, mac, &disk.device);
        let bmc = Bmc::follow(tool.clone(), uuid.clone(), machine.clone());
        tool.run(&["node", "manage", &uuid, "--wait", "60"])?;
        Ok(Self { tool, uuid, disk, machine, bmc })
    }

    /// Runs a verb to its end.
    fn verb(&self, verb: &str, more: &[&str]) -> Result<()> {
        let mut line = vec!["node", verb, self.uuid.as_str(), "--wait", CLEANING];
        line.extend(more);
        self.tool.run(&line)
    }

    /// Runs a verb that must fail; the node must end in `state`, and is given.
    fn fails(&self, verb: &str, more: &[&str], state: &str) -> Result<Value> {
        let mut line = vec!["node", verb, self.uuid.as_str(), "--wait", CLEANING];
        line.extend(more);
        self.tool.refused(&line)?;
        let node = self.show()?;
        let seen = &node["provision_state"];
        ensure!(seen == state, "after {verb} the node is {seen}, not {state}: {}", node["last_error"]);
        Ok(node)
    }

    /// Asks for a verb and does not wait for what comes of it.
    fn ask(&self, verb: &str, more: &[&str]) -> Result<()> {
        let mut line = vec!["node", verb, self.uuid.as_str()];
        line.extend(more);
        self.tool.run(&line)
    }

    /// Asks for clean steps and does not wait for what comes of them.
    fn clean(&self, steps: &Value) -> Result<()> {
        self.ask("clean", &["--clean-steps", &steps.to_string()])
    }

    /// Waits until the node is as `question` wants it, and gives it.
    fn until(&self, what: &str, question: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut seen = Value::Null;
        let asked = wait_until(what, PATIENCE, || {
            seen = self.show()?;
            Ok(question(&seen))
        });
        asked.with_context(|| format!("the node is {}: {}", seen["provision_state"], seen["last_error"]))?;
        Ok(seen)
    }

    /// Waits until the node is in `state`.
    fn until_in(&self, state: &str) -> Result<Value> {
        self.until(&format!("the node is in {state}"), |node| node["provision_state"] == state)
    }

    /// Waits until the agent of boot number `boot` runs the clean step `wait_for_go` and the controller knows.
    fn until_it_waits(&self, boot: usize) -> Result<()> {
        self.until("the agent runs the step", |node| {
            let cursor = &run(node)["cursor"];
            cursor["accepted"] == true
                && node["clean_step"]["step"].as_str().is_some_and(|step| step.starts_with("wait"))
        })?;
        // The agent reports that it runs before the step has begun.
        wait_until("the step has begun", PATIENCE, || Ok(self.machine.ran(boot).is_ok()))
    }

    fn show(&self) -> Result<Value> {
        self.tool.json(&["node", "show", &self.uuid])
    }

    /// The node rests in `state` without an error, and is off.
    fn ensure_rests_in(&self, state: &str) -> Result<Value> {
        let node = self.show()?;
        ensure!(node["provision_state"] == state, "the node is {}, not {state}", node["provision_state"]);
        for field in ["last_error", "fault", "target_provision_state"] {
            ensure!(node[field].is_null(), "{field} is {}", node[field]);
        }
        ensure!(node["maintenance"] == false, "the node is in maintenance");
        ensure!(node["power_state"] == "power off", "the node is {}", node["power_state"]);
        Ok(node)
    }
}
