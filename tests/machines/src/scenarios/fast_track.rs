//! Fast track: a node is cleaned and deployed in one boot of the ramdisk, with the token of that boot. Cleaned again, it waits for
//! a deployment that does not come, and is powered off.

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::images::ImageServer;
use lab::signatures::{Content, OLD_SYSTEM, Table};
use lab::site::{ADDRESS, Site};
use lab::wait;
use serde_json::json;

use crate::node::{Node, history};
use crate::stage::{LONG, NO_METADATA, NODE, SHORT, Stage, manageable, through, verb};

pub const ABOUT: &str =
    "a cleaned node is deployed without a reboot; one that is not deployed is powered off after a time";

/// Long enough for a deployment to begin, short enough to be waited for.
const SETTINGS: &str = "fast_track = true\nfast_track_idle_s = 45\n";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("ROOT", Bus::Sata, 64)?;
    let images = stage.dir.join("images");
    std::fs::create_dir(&images)?;
    let image = crate::disk::OldDisk::make(&images, "IMAGE", Bus::Sata, 64 << 20)?;
    let image = image.labelled(Table::Mbr, Content::Data)?;
    let mut site = stage.site(&format!("{NO_METADATA}{SETTINGS}")).await?;
    let node = manageable(&mut site, &[&disk]).await?;
    let controller = &site.controller;
    let server = ImageServer::start(ADDRESS, &images).await?;
    let info = json!({"/instance_info": {
        "image_source": server.url("IMAGE.img"), "image_os_hash_algo": "sha256",
        "image_os_hash_value": server.sha256("IMAGE.img")?, "image_disk_format": "raw", "root_device": {"serial": "ROOT"},
    }});
    controller.set(NODE, info).await?;

    let cleaned = through(controller, verb("provide"), "available").await?;
    disk.ensure_erased()?;
    ensure!(cleaned.0["power_state"] == "power on", "a cleaned node is {}", cleaned.0["power_state"]);
    let boot = cleaned.anneal()["agent"]["boot_id"].clone();
    ensure!(boot.is_string(), "no agent is known: {}", cleaned.anneal());
    let (process, boots) = (node.machine.pid().await.context("it is off")?, power_ons(&site));
    controller.provision_with(NODE, verb("active")).await?;
    let seen = wait::until("the image to be written", LONG, || async {
        let node = Node::now(controller, NODE).await?;
        Ok((node.0["deploy_step"]["step"] == "write_image").then_some(node))
    })
    .await?;
    ensure!(seen.anneal()["agent"]["boot_id"] == boot, "another boot: {}", seen.anneal());
    ensure!(node.machine.pid().await == Some(process), "the machine was powered off");
    let seen = Node(controller.node_in(NODE, &["active", "deploy failed"], LONG).await?);
    ensure!(seen.state() == "active", "{}", seen.last_error());
    // The ramdisk of the cleaning, and the instance.
    ensure!((boots, power_ons(&site)) == (1, 2), "{:?}", site.timeline.events());
    wait::for_line(&node.machine.spec().serial_log(), OLD_SYSTEM, SHORT).await.context("the image boots")?;
    let found = image.as_file(disk.spec.file.clone()).findings()?;
    ensure!(found.unchanged == found.held_data, "the disk does not hold the image: {found:?}");
    let events = history(controller, NODE).await?;
    let begins = "the deployment begins in the ramdisk";
    ensure!(events.iter().any(|event| event.contains(begins)), "{events:?}");

    let cleaned = through(controller, verb("deleted"), "available").await?;
    ensure!(cleaned.0["power_state"] == "power on", "a cleaned node is {}", cleaned.0["power_state"]);
    wait::until("the idle node to be off", LONG, || async {
        let node = Node::now(controller, NODE).await?;
        ensure!(node.state() == "available", "it is {}", node.state());
        Ok((node.0["power_state"] == "power off").then_some(()))
    })
    .await?;
    ensure!(!node.machine.is_on().await, "the machine runs");
    let events = history(controller, NODE).await?;
    let idle = "no deployment began within 45 s";
    ensure!(events.iter().any(|event| event.contains(idle)), "{events:?}");
    ensure!(
        Node::now(controller, NODE).await?.anneal()["agent"].is_null(),
        "an agent is known of a node that is off"
    );
    Ok(())
}

/// How often the machine was powered on.
fn power_ons(site: &Site) -> usize {
    site.timeline.events().iter().filter(|event| event.subject == NODE && event.what == "power on").count()
}
