//! A node is inspected by its ramdisk: disks and NICs with what identifies them, and properties that follow. A disk that is pulled
//! afterwards fails the cleaning, which names it: its data left with it.

use anyhow::{Context, Result, ensure};
use lab::disk::{Bus, DiskSpec};
use lab::node::Firmware;
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;

use crate::node::history;
use crate::stage::{ERASE, NO_METADATA, NODE, Stage, enrol_redfish, held, through, verb};

pub const ABOUT: &str = "the ramdisk reports what is in the machine, properties follow; a disk pulled since then is named, the node held";

/// The smallest disk on which an operating system fits (Ironic: 4 GiB), in MiB.
const ROOT_MIB: u64 = 6 << 10;

/// Most bytes of its image: other scenarios need room, too.
const ROOT_USED_MAX: u64 = 64 << 20;

pub async fn story(stage: Stage) -> Result<()> {
    let small = stage.disk("SMALL", Bus::Nvme, 64)?;
    let root = stage.dir.join("ROOT.img");
    std::fs::File::create(&root)?.set_len(ROOT_MIB << 20)?;
    let mut site = stage.site(NO_METADATA).await?;
    let disks = vec![small.spec.clone(), DiskSpec::new(root.clone(), Bus::Sata, "ROOT").with_holes()];
    let node = site.node(NODE, Firmware::Bios, disks).await?;
    enrol_redfish(&site, &node).await?;
    site.controller.set(NODE, json!({"/inspect_interface": "agent", "/properties/rack": "r7"})).await?;

    let seen = through(&site.controller, verb("inspect"), "manageable").await?;
    ensure!(!node.machine.is_on().await, "an inspected node is off");
    let answer = site.controller.get(&format!("/v1/nodes/{NODE}/inventory")).await?;
    let inventory = &answer["inventory"];
    let listed = inventory["disks"].as_array().context("no disks")?;
    let disk = |serial: &str| {
        let found = listed.iter().find(|disk| disk["serial"] == serial);
        found.with_context(|| format!("no disk {serial} in {listed:?}"))
    };
    ensure!(listed.len() == 2, "two disks: {listed:?}");
    ensure!(disk("SMALL")?["size"] == 64 << 20, "{}", disk("SMALL")?);
    ensure!(disk("ROOT")?["size"] == ROOT_MIB << 20, "{}", disk("ROOT")?);
    ensure!(disk("SMALL")?["name"].as_str().is_some_and(|name| name.contains("nvme")), "{listed:?}");

    let spec = node.machine.spec();
    let nics = inventory["interfaces"].as_array().context("no interfaces")?;
    ensure!(nics.len() == 1 && nics[0]["mac_address"] == spec.mac.as_str(), "NICs: {nics:?}");
    ensure!(nics[0]["ipv4_address"].is_string() && nics[0]["has_carrier"] == true, "NICs: {nics:?}");
    let boot = &inventory["boot"];
    ensure!(boot["current_boot_mode"] == "bios", "boot: {boot}");
    ensure!(boot["pxe_interface"] == spec.mac.as_str(), "boot: {boot}");
    ensure!(inventory["memory"]["physical_mb"] == spec.memory_mib, "memory: {}", inventory["memory"]);
    ensure!(answer["plugin_data"]["root_disk"]["serial"] == "ROOT", "root disk: {}", answer["plugin_data"]);

    let wanted = [
        ("cpus", json!(1)),
        ("cpu_arch", json!("x86_64")),
        ("memory_mb", json!(spec.memory_mib)),
        ("local_gb", json!((ROOT_MIB >> 10) - 1)),
        ("rack", json!("r7")),
    ];
    for (name, value) in wanted {
        ensure!(seen.0["properties"][name] == value, "{name} of {}, not {value}", seen.0["properties"]);
    }
    // The controller knew the node by a port before: another one would be a port twice.
    let ports = site.controller.get("/v1/ports/detail").await?;
    let ports = ports["ports"].as_array().context("no ports")?;
    ensure!(ports.len() == 1 && ports[0]["address"] == spec.mac.as_str(), "ports: {ports:?}");
    ensure!(ports[0]["pxe_enabled"] == true, "ports: {ports:?}");
    let finished: &Value = &seen.0["inspection_finished_at"];
    ensure!(finished.is_string(), "inspection_finished_at is {finished}");
    let events = history(&site.controller, NODE).await?;
    for text in ["INSPECTED", "the inventory came from agent"] {
        ensure!(events.iter().any(|event| event.contains(text)), "no event {text:?}: {events:?}");
    }
    small.ensure_untouched()?;

    node.machine.pull_disk("SMALL").await;
    site.controller.provision_with(NODE, verb("provide")).await?;
    let after = held(&site.controller).await?;
    after.ensure_says(&[ERASE, "SMALL", "is missing"])?;
    ensure!(!after.last_error().contains("ROOT"), "ROOT is blamed: {}", after.last_error());
    let used = std::fs::metadata(&root)?.blocks() * 512;
    ensure!(used < ROOT_USED_MAX, "erasing ROOT has made {used} bytes of its image");
    small.ensure_untouched()
}
