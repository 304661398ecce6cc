//! A UEFI node with our agent gets an image whose loader the firmware finds only by a boot entry, and boots it.

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::efi_image::{self, BOOTED};
use lab::images::ImageServer;
use lab::node::Firmware;
use lab::site::ADDRESS;
use lab::wait;
use serde_json::json;

use crate::stage::{NODE, SHORT, Stage, enrol_redfish, through, verb};

pub const ABOUT: &str = "a UEFI node boots the image that was written by the boot entry that the agent made";

const ESP: &str = "5CA1AB1E-0000-4000-8000-00000000C0DE";

pub async fn story(stage: Stage) -> Result<()> {
    let root = stage.disk("ROOT", Bus::Sata, 64)?;
    let data = stage.disk("DATA", Bus::Nvme, 64)?;
    let images = stage.dir.join("images");
    std::fs::create_dir(&images)?;
    let raw = stage.dir.join("image.raw");
    efi_image::make(&raw, "debian", ESP)?;
    efi_image::as_qcow2(&raw, &images.join("image.qcow2"))?;

    let mut site = stage.site("").await?;
    let disks = [&root, &data].map(|disk| disk.spec.clone());
    let node = site.node(NODE, Firmware::Uefi, disks.to_vec()).await?;
    enrol_redfish(&site, &node).await?;
    let controller = &site.controller;
    let console = node.machine.spec().serial_log();
    let server = ImageServer::start(ADDRESS, &images).await?;
    controller.set(NODE, json!({"/automated_clean": false})).await?;
    through(controller, verb("provide"), "available").await?;

    let info = json!({"/instance_info": {
        "image_source": server.url("image.qcow2"), "image_os_hash_algo": "sha256",
        "image_os_hash_value": server.sha256("image.qcow2")?, "image_disk_format": "qcow2",
        "root_device": {"serial": "ROOT"},
    }});
    controller.set(NODE, info).await?;
    let seen = through(controller, verb("active"), "active").await?;
    ensure!(seen.0["power_state"] == "power on", "a deployed node is {}", seen.0["power_state"]);
    let results = seen.results("deploy.prepare_instance_boot");
    ensure!(results.len() == 1, "{}", seen.anneal()["run"]);
    let entries = &results[0]["result"]["boot_entries"];
    ensure!(entries["added"] == true && entries["label"] == "debian", "{}", results[0]);
    ensure!(entries["removed"] == json!([]) && entries["partitions_unknown"].is_null(), "{entries}");
    let first = entries["order"].as_array().and_then(|order| order.first()?.as_str());
    let first = first.context("the order of the boot entries")?;
    ensure!(entries["entry"] == format!("Boot{first}"), "it is not the first: {entries}");

    // As the firmware reads our entry.
    let start = format!(
        "starting Boot{first} \"debian\" from HD(15,GPT,{ESP},0x1000,0x8000)/\\EFI\\debian\\shimx64.efi"
    );
    wait::for_line(&console, &start, SHORT).await.context("the firmware starts the entry")?;
    wait::for_line(&console, BOOTED, SHORT).await.context("the loader runs")?;
    data.ensure_untouched()
}
