//! What every scenario is given: a directory, and short words for what most of them do.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::controller::Controller;
use lab::disk::Bus;
use lab::machine::Machine;
use lab::node::Firmware;
use lab::redfish::RedfishBmc;
use lab::site::{BMC_PASSWORD, BMC_USER, Site, SiteNode};
use reqwest::Method;
use serde_json::{Value, json};

use crate::disk::OldDisk;
use crate::moments::Moments;
use crate::node::Node;

/// From a verb to the end of what it began, with a boot in between; many times what a quiet machine takes.
pub const LONG: Duration = Duration::from_secs(240);
/// For what takes a second.
pub const SHORT: Duration = Duration::from_secs(60);
/// Name of the only node.
pub const NODE: &str = "n1";
/// Both erase steps, in the order they run.
pub const METADATA: &str = "deploy.erase_devices_metadata";
/// See [`METADATA`].
pub const ERASE: &str = "deploy.erase_devices";

/// Looks often, so that scenarios are short.
pub const SETTINGS: &str = "\
[agent]
heartbeat_timeout_s = 10
[conductor]
agent_poll_s = 1
reset_pause_s = 3
retry_pause_s = 1
agent_silence_s = 90
boot_timeout_s = 200
";

/// Only the full erase runs: most scenarios are about that.
pub const NO_METADATA: &str = "clean_step_priority_override = { \"deploy.erase_devices_metadata\" = 0 }\n";

/// Where a scenario plays.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Everything the scenario writes is below.
    pub dir: PathBuf,
    /// How often to kill or cut, where that is the story.
    pub times: u64,
    /// Names the moments of it.
    pub seed: u64,
    /// Every case is tried, not one of each kind.
    pub long: bool,
}

impl Stage {
    /// When to kill or cut.
    pub fn moments(&self) -> Moments {
        Moments::new(self.seed)
    }

    /// A site whose controller has quick settings and more lines for its `[conductor]` section.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn site(&self, conductor: &str) -> Result<Site> {
        Site::start(&self.dir, &format!("{SETTINGS}{conductor}")).await
    }

    /// A disk of `mib` MiB full of old data.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn disk(&self, serial: &str, bus: Bus, mib: u64) -> Result<OldDisk> {
        OldDisk::make(&self.dir, serial, bus, mib << 20)
    }
}

/// A BIOS node with these disks, behind a Redfish BMC, enrolled and manageable.
///
/// # Errors
/// When a part does not start or the controller refuses.
pub async fn manageable(site: &mut Site, disks: &[&OldDisk]) -> Result<SiteNode> {
    let specs = disks.iter().map(|disk| disk.spec.clone()).collect();
    let node = site.node(NODE, Firmware::Bios, specs).await?;
    enrol_redfish(site, &node).await?;
    Ok(node)
}

/// Where nothing happens to a node without a request.
const AT_REST: [&str; 15] = [
    "manageable",
    "available",
    "active",
    "rescue",
    "error",
    "clean failed",
    "clean hold",
    "deploy failed",
    "deploy hold",
    "inspect failed",
    "adopt failed",
    "rescue failed",
    "unrescue failed",
    "service failed",
    "service hold",
];

/// Asks for a verb (`{"target": "clean", "clean_steps": […]}`) and waits for its end, which must be `state`.
///
/// # Errors
/// When it is refused, ends elsewhere, or takes too long.
pub async fn through(controller: &Controller, request: Value, state: &str) -> Result<Node> {
    let verb = request["target"].to_string();
    controller.provision_with(NODE, request).await?;
    let node = Node(controller.node_in(NODE, &AT_REST, LONG).await.with_context(|| verb.clone())?);
    ensure!(node.state() == state, "{verb} led to {}: {}", node.state(), node.last_error());
    let failed = state.ends_with(" failed");
    ensure!(failed != node.last_error().is_empty(), "{verb}: last_error is {:?}", node.last_error());
    Ok(node)
}

/// Waits until the cleaning of [`NODE`] ends, and returns the node.
///
/// # Errors
/// When it does not end in `state`.
pub async fn cleaned(controller: &Controller, state: &str) -> Result<Node> {
    let node = Node(controller.node_in(NODE, &[state, "clean failed"], LONG).await?);
    ensure!(node.state() == state, "{}: {}", node.state(), node.last_error());
    Ok(node)
}

/// Waits until the cleaning of [`NODE`] has failed, and returns the node, which is held.
///
/// # Errors
/// When it does not fail, or the node is not held.
pub async fn held(controller: &Controller) -> Result<Node> {
    let node = Node(controller.node_in(NODE, &["available", "clean failed"], LONG).await?);
    node.ensure_held()?;
    Ok(node)
}

/// A verb without more.
pub fn verb(target: &str) -> Value {
    json!({"target": target})
}

/// Takes the brake off the writes of a disk with [`lab::disk::Fault::SlowWrites`], number `index` of its node.
///
/// # Errors
/// When the node is off or QEMU refuses.
pub async fn full_speed(machine: &Machine, index: usize) -> Result<()> {
    let path = format!("/objects/throttle{index}");
    let set = json!({"path": path, "property": "limits", "value": {"bps-write": 0}});
    machine.qmp("qom-set", set).await?;
    Ok(())
}

/// Enrols a node of the lab by its BMC, and manages it.
///
/// # Errors
/// When the controller refuses.
pub async fn enrol_redfish(site: &Site, node: &SiteNode) -> Result<()> {
    enrol(&site.controller, &node.name, "redfish", redfish_info(node), &node.machine.spec().mac).await
}

/// What a node behind this BMC is enrolled with.
pub fn redfish_info(node: &SiteNode) -> Value {
    json!({
        "redfish_address": node.bmc.url(),
        "redfish_system_id": RedfishBmc::system_id(),
        "redfish_username": BMC_USER,
        "redfish_password": BMC_PASSWORD,
        "redfish_verify_ca": false,
    })
}

/// The report of a full erase of a disk that no node has.
pub fn made_up_report() -> Value {
    json!({"disks": [room::erased("erase_devices", "/dev/sda", "MADE-UP", 16 << 20)]})
}

/// Enrols a node with one port, and manages it.
///
/// # Errors
/// When the controller refuses, or cannot reach the BMC.
pub async fn enrol(controller: &Controller, name: &str, driver: &str, info: Value, mac: &str) -> Result<()> {
    let mut node = json!({"name": name, "driver": driver, "driver_info": info});
    if driver == "fake-hardware" {
        // Its default has no agent.
        node["deploy_interface"] = "direct".into();
    }
    let (status, node) = controller.call(Method::POST, "/v1/nodes", Some(node)).await?;
    ensure!(status == 201, "creating {name}: {status} {node}");
    let port = json!({"address": mac, "node_uuid": node["uuid"]});
    let (status, port) = controller.call(Method::POST, "/v1/ports", Some(port)).await?;
    ensure!(status == 201, "creating the port of {name}: {status} {port}");
    controller.provision(name, "manage").await?;
    controller.node_in(name, &["manageable"], SHORT).await.context("manage")?;
    Ok(())
}
