//! sushy-tools' emulator, whose machines are the nodes of a cloud: it is asked by Redfish, and asks by Ironic's API.

use crate::World;
use crate::clouds;
use crate::controller::Controller;
use crate::process::{Daemon, check, free_port, wait_until};
use crate::tool::Tool;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const MAC: &str = "52:54:00:c0:47:61";

pub fn run(world: &World) -> Result<()> {
    let controller = Controller::start(world)?;
    let clouds = clouds::write(world, &controller, &["anneal"])?;
    let tool = Tool::anneal(world, &controller.endpoint);
    let line = ["node", "create", "--driver", "fake-hardware", "--name", "emulated", "--mac", MAC];
    let node = tool.json(&[&line[..], &["--property", "memory_mb=8192"]].concat())?;
    let uuid = node["uuid"].as_str().context("the node has a UUID")?;
    tool.run(&["node", "manage", "emulated", "--wait", "60"])?;
    let is = |state: &str| {
        wait_until(&format!("the node is {state}"), PATIENCE, || {
            Ok(tool.json(&["node", "show", "emulated"])?["power_state"] == state)
        })
    };

    let system = System::of(world, &clouds, uuid, "first")?;
    let seen = system.get("")?;
    ensure!(seen["Name"] == "emulated" && seen["UUID"] == uuid, "the system: {seen}");
    ensure!(seen["PowerState"] == "Off", "PowerState at first: {}", seen["PowerState"]);
    ensure!(seen["MemorySummary"]["TotalSystemMemoryGiB"] == 8, "its memory: {}", seen["MemorySummary"]);
    system.reset("On")?;
    is("power on")?;
    let boot = json!({"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Continuous"});
    system.ask("PATCH", "", &json!({"Boot": boot}))?;
    let seen = system.get("")?;
    let target = &seen["Boot"]["BootSourceOverrideTarget"];
    ensure!(target == "Cd", "the boot device that was set: {target}");
    drop(system);

    // It keeps what it has read of a node until it ends: only another one sees that the node is on.
    let system = System::of(world, &clouds, uuid, "second")?;
    let seen = system.get("")?;
    ensure!(seen["PowerState"] == "On", "PowerState after On: {}", seen["PowerState"]);
    let ports = system.get("/EthernetInterfaces")?;
    ensure!(ports["Members@odata.count"] == 1, "its ports: {ports}");
    system.reset("ForceRestart")?;
    is("power on")?;
    system.reset("ForceOff")?;
    is("power off")
}

/// A machine of a running emulator.
struct System {
    url: String,
    _emulator: Daemon,
}

impl System {
    /// Starts an emulator over the cloud "anneal" of `clouds`, and waits until it shows the node.
    fn of(world: &World, clouds: &Path, node: &str, name: &str) -> Result<Self> {
        let port = free_port()?;
        let mut command = Command::new(world.peers.program("sushy-tools", "sushy-emulator"));
        command.args(["--interface", "127.0.0.1", "--port", &port.to_string(), "--ironic-cloud", "anneal"]);
        command.env("OS_CLIENT_CONFIG_FILE", clouds);
        let mut emulator = Daemon::start(&command, &world.dir.join(format!("sushy-emulator-{name}.log")))?;
        let url = format!("http://127.0.0.1:{port}/redfish/v1/Systems/{node}");
        wait_until("the emulator shows the node", PATIENCE, || {
            emulator.ensure_running()?;
            Ok(check(curl().arg(&url)).is_ok())
        })?;
        Ok(Self { url, _emulator: emulator })
    }

    fn get(&self, path: &str) -> Result<Value> {
        let output = check(curl().arg(format!("{}{path}", self.url)))?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<()> {
        let mut curl = curl();
        curl.args(["--request", method, "--header", "Content-Type: application/json", "--data"]);
        check(curl.arg(body.to_string()).arg(format!("{}{path}", self.url))).map(drop)
    }

    fn reset(&self, kind: &str) -> Result<()> {
        self.ask("POST", "/Actions/ComputerSystem.Reset", &json!({"ResetType": kind}))
    }
}

fn curl() -> Command {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail-with-body"]);
    curl
}
