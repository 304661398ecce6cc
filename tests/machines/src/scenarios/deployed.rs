//! A node with our agent gets an image over HTTP and boots it; an image with another digest leaves nothing that boots.

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::images::ImageServer;
use lab::signatures::{Content, OLD_SYSTEM, Table};
use lab::site::ADDRESS;
use lab::wait;
use serde_json::json;
use std::io::Read;

use crate::certificate::ensure_deployed;
use crate::node::history;
use crate::stage::{NODE, SHORT, Stage, manageable, through, verb};

pub const ABOUT: &str =
    "an image with a wrong digest fails and does not boot; the right one is written and boots";

pub async fn story(stage: Stage) -> Result<()> {
    let root = stage.disk("ROOT", Bus::Sata, 64)?;
    let data = stage.disk("DATA", Bus::Nvme, 64)?;
    let images = stage.dir.join("images");
    std::fs::create_dir(&images)?;
    let image = crate::disk::OldDisk::make(&images, "IMAGE", Bus::Sata, 64 << 20)?;
    let image = image.labelled(Table::Mbr, Content::Data)?;

    let mut site = stage.site("").await?;
    let node = manageable(&mut site, &[&root, &data]).await?;
    let controller = &site.controller;
    let console = node.machine.spec().serial_log();
    let server = ImageServer::start(ADDRESS, &images).await?;
    controller.set(NODE, json!({"/automated_clean": false})).await?;
    through(controller, verb("provide"), "available").await?;

    let info = |digest: &str| {
        json!({"/instance_info": {
            "image_source": server.url("IMAGE.img"), "image_os_hash_algo": "sha256", "image_os_hash_value": digest,
            "image_disk_format": "raw", "root_device": {"serial": "ROOT"},
        }})
    };
    controller.set(NODE, info(&"0".repeat(64))).await?;
    let failed = through(controller, verb("active"), "deploy failed").await?;
    failed.ensure_says(&["deploy.write_image"])?;
    ensure!(failed.0["deploy_step"]["step"] == "write_image", "deploy_step: {}", failed.0["deploy_step"]);
    ensure!(failed.0["maintenance"] == false, "a failed deployment is no maintenance");
    let events = history(controller, NODE).await?;
    ensure!(!events.iter().any(|event| event.contains("-> active")), "it was active: {events:?}");
    let mut start = vec![0; 1 << 20];
    std::fs::File::open(&root.spec.file)?.read_exact(&mut start)?;
    ensure!(start.iter().all(|byte| *byte == 0), "the first MiB holds something after a failure");

    controller.set(NODE, info(&server.sha256("IMAGE.img")?)).await?;
    let seen = through(controller, verb("active"), "active").await?;
    ensure!(seen.0["power_state"] == "power on", "a deployed node is {}", seen.0["power_state"]);
    wait::for_line(&console, OLD_SYSTEM, SHORT).await.context("the image boots")?;
    let written = &seen.results("deploy.write_image")[0];
    let id = written["certificate"].as_str().with_context(|| format!("no certificate: {written}"))?;
    let digest = server.sha256("IMAGE.img")?;
    ensure_deployed(controller, &stage.dir, id, ("ROOT", &digest)).await?;
    let found = image.as_file(root.spec.file.clone()).findings()?;
    ensure!(found.unchanged == found.held_data, "the disk does not hold the image: {found:?}");
    data.ensure_untouched()
}
