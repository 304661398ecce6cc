//! A BIOS node with our agent gets a compressed image over HTTP and boots it. A rebuild sets a BIOS setting and writes the same
//! disk; the other one, which has an old system, keeps every byte. Torn down, the node has nothing of the deployment any more.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use lab::controller::Controller;
use lab::disk::Bus;
use lab::images::ImageServer;
use lab::packing::Packing;
use lab::signatures::{self, Content, Table};
use lab::site::ADDRESS;
use lab::{fill, wait};
use serde_json::{Value, json};

use crate::bmc::Bmc;
use crate::certificate::ensure_deployed;
use crate::disk::OldDisk;
use crate::node::Node;
use crate::stage::{NODE, SHORT, Stage, manageable, through, verb};

pub const ABOUT: &str = "a BIOS node boots a zstd image from NVMe; a rebuild writes the same disk, the other keeps every byte; torn down";

/// Name of each image; what it says when it boots is made of it.
const IMAGES: [&str; 2] = ["FIRST", "SECOND"];
const MIB: u64 = 1 << 20;

pub async fn story(stage: Stage) -> Result<()> {
    let root = stage.disk("ROOT", Bus::Nvme, 64)?;
    let data = stage.disk("DATA", Bus::Sata, 64)?.labelled(Table::Gpt, Content::LvmPhysicalVolume)?;
    let before = data.copy()?;
    let images = stage.dir.join("images");
    std::fs::create_dir(&images)?;
    let [first, second] = IMAGES.map(|name| image(&images, name));
    let [first, second] = [first?, second?];

    let mut site = stage.site("").await?;
    let node = manageable(&mut site, &[&root, &data]).await?;
    let controller = &site.controller;
    let console = node.machine.spec().serial_log();
    let server = ImageServer::start(ADDRESS, &images).await?;
    controller.set(NODE, json!({"/automated_clean": false})).await?;
    through(controller, verb("provide"), "available").await?;

    let bmc = Bmc::new(&node)?;
    let setting = json!([{"name": "ProcTurboMode", "value": "Disabled"}]);
    let bios = json!({
        "interface": "bios", "step": "apply_configuration", "args": {"settings": setting}, "priority": 150,
    });
    let rebuild = json!({"target": "rebuild", "deploy_steps": [bios]});
    for (image, request) in [(&first, verb("active")), (&second, rebuild)] {
        let seen = deployed(controller, &server, image.serial(), request).await?;
        ensure!(seen.0["power_state"] == "power on", "a deployed node is {}", seen.0["power_state"]);
        wait::for_line(&console, &boots(image.serial()), SHORT).await.context("the image boots")?;
        let written = &seen.results("deploy.write_image")[0];
        let id = written["certificate"].as_str().with_context(|| format!("no certificate: {written}"))?;
        let digest = server.sha256(&served(image.serial()))?;
        ensure_deployed(controller, &stage.dir, id, ("ROOT", &digest)).await?;
        let found = scanned(image, &root)?;
        ensure!(found.unchanged == found.held_data, "the disk does not hold the image: {found:?}");
        data.ensure_same(&before)?;
    }
    let set = bmc.configuration().await?;
    ensure!(set["bios"]["ProcTurboMode"] == "Disabled", "the rebuild has set nothing: {set}");

    controller.set(NODE, json!({"/automated_clean": true})).await?;
    let seen = through(controller, verb("deleted"), "available").await?;
    ensure!(seen.0["instance_info"] == json!({}), "left of the instance: {}", seen.0["instance_info"]);
    ensure!(seen.0["deploy_step"] == json!({}), "left of the deployment: {}", seen.0["deploy_step"]);
    ensure!(!node.machine.is_on().await, "an available node is off");
    root.ensure_erased()?;
    data.ensure_erased()
}

/// A disk image with a boot sector, and the same compressed.
fn image(dir: &Path, name: &str) -> Result<OldDisk> {
    let image = OldDisk::prepared(dir, name, Bus::Nvme, 64 * MIB, |file| {
        fill::fill(file, name, 64 * MIB)?;
        signatures::write(file, Table::Mbr, Content::Data)?;
        signatures::say(file, &boots(name))
    })?;
    Packing::Zstd.pack(&image.spec.file, &dir.join(served(name)))?;
    Ok(image)
}

fn served(name: &str) -> String {
    format!("{name}.zst")
}

fn boots(name: &str) -> String {
    format!("THE {name} SYSTEM BOOTED")
}

/// What of the image is on the disk.
fn scanned(image: &OldDisk, disk: &OldDisk) -> Result<lab::scan::Findings> {
    image.as_file(disk.spec.file.clone()).findings()
}

async fn deployed(controller: &Controller, server: &ImageServer, name: &str, request: Value) -> Result<Node> {
    let name = served(name);
    let mut info = json!({
        "image_source": server.url(&name), "image_os_hash_algo": "sha256", "image_os_hash_value": server.sha256(&name)?,
        "image_disk_format": "raw",
    });
    if request["target"] != "rebuild" {
        // A rebuild knows the disk. Without hints none of these is large enough.
        info["root_device"] = json!({"serial": "ROOT"});
    }
    controller.set(NODE, json!({"/instance_info": info})).await?;
    through(controller, request, "active").await
}
