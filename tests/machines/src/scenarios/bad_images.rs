//! What goes wrong with an image on a booted node: each time `deploy failed` with the cause in one sentence, and nothing that
//! can be booted; a running write stops at `abort` and `undeploy`. In the end the same node is deployed.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::controller::Controller;
use lab::disk::Bus;
use lab::images::ImageServer;
use lab::machine::Machine;
use lab::mirror::{Behaviour, Mirror};
use lab::packing::Packing;
use lab::signatures::{Content, OLD_SYSTEM, Table};
use lab::site::ADDRESS;
use lab::{fill, signatures, wait};
use serde_json::{Value, json};

use crate::disk::OldDisk;
use crate::node::{Node, history, writing};
use crate::stage::{LONG, NODE, SHORT, Stage, manageable, through, verb};

pub const ABOUT: &str =
    "bad images, a wrong hint, an abort and an undeploy leave nothing bootable; then the node is deployed";

const MIB: u64 = 1 << 20;
/// Of the image.
const SIZE: u64 = 24 * MIB;
/// Within this a running write has stopped.
const STOPS: Duration = Duration::from_secs(5);
/// Bytes a second of a mirror that is slow: the image takes half a minute.
const SLOW: usize = 800_000;

pub async fn story(stage: Stage) -> Result<()> {
    let root = stage.disk("ROOT", Bus::Sata, 64)?;
    let images = stage.dir.join("images");
    std::fs::create_dir(&images)?;
    make_images(&images)?;
    let mut site = stage.site("").await?;
    let node = manageable(&mut site, &[&root]).await?;
    let controller = &site.controller;
    let console = node.machine.spec().serial_log();
    let server = ImageServer::start(ADDRESS, &images).await?;
    controller.set(NODE, json!({"/automated_clean": false})).await?;
    through(controller, verb("provide"), "available").await?;

    let info = |name: &str| -> Result<Value> {
        Ok(json!({
            "image_source": server.url(name), "image_os_hash_algo": "sha256",
            "image_os_hash_value": server.sha256(name)?, "image_disk_format": "raw", "root_device": {"serial": "ROOT"},
        }))
    };
    let with = |mut info: Value, change: Value| {
        for (member, value) in change.as_object().into_iter().flatten() {
            info[member] = value.clone();
        }
        info
    };
    let cases = if stage.long { usize::MAX } else { 1 };
    // What is seen before the first byte.
    let missing = with(info("IMAGE.img")?, json!({"image_source": server.url("missing")}));
    let before = [
        (with(info("large.qcow2")?, json!({"image_disk_format": "qcow2"})), "the image has 134217728 bytes"),
        (
            with(info("IMAGE.img")?, json!({"root_device": {"serial": "OTHER"}})),
            "no disk matches the root device hints",
        ),
        (missing, "missing answered 404"),
    ];
    for (info, says) in before.into_iter().take(cases) {
        fails(controller, info, says).await?;
        root.ensure_untouched().context(says)?;
    }
    // What is seen behind it.
    let other = with(info("IMAGE.img")?, json!({"image_os_hash_value": "0".repeat(64)}));
    let behind = [(other, "the sha256 of http://"), (info("cut.gz")?, "the gzip stream of the image")];
    for (info, says) in behind.into_iter().take(cases) {
        fails(controller, info, says).await?;
        root.ensure_unbootable().context(says)?;
    }
    let events = history(controller, NODE).await?;
    ensure!(!events.iter().any(|event| event.contains("-> active")), "it was active: {events:?}");

    let image = std::fs::read(images.join("IMAGE.img"))?;
    let slow = |_| Behaviour { rate: Some(SLOW), ..Behaviour::default() };
    let mirror = Mirror::start(ADDRESS, image, slow).await?;
    let slowly = with(info("IMAGE.img")?, json!({"image_source": mirror.url()}));
    stopped((controller, &node.machine), (&mirror, slowly), &root).await?;

    controller.set(NODE, json!({"/instance_info": info("IMAGE.img")?})).await?;
    let seen = through(controller, verb("active"), "active").await?;
    ensure!(seen.0["power_state"] == "power on", "a deployed node is {}", seen.0["power_state"]);
    wait::for_line(&console, OLD_SYSTEM, SHORT).await.context("the image boots")?;
    Ok(())
}

/// An image that boots, the first half of it compressed, and one that no disk here can hold.
fn make_images(dir: &Path) -> Result<()> {
    let image = OldDisk::prepared(dir, "IMAGE", Bus::Sata, SIZE, |file| {
        fill::fill(file, "IMAGE", SIZE)?;
        signatures::write(file, Table::Mbr, Content::Data)
    })?;
    let packed = dir.join("cut.gz");
    Packing::Gzip.pack(&image.spec.file, &packed)?;
    let file = std::fs::File::options().write(true).open(&packed)?;
    file.set_len(file.metadata()?.len() / 2)?;
    let large = dir.join("large");
    std::fs::File::create(&large)?.set_len(128 * MIB)?;
    Packing::Qcow2.pack(&large, &dir.join("large.qcow2"))
}

/// A deployment with this `instance_info` fails, and the error says so in one sentence.
async fn fails(controller: &Controller, info: Value, says: &str) -> Result<Node> {
    controller.set(NODE, json!({"/instance_info": info})).await?;
    let failed = through(controller, verb("active"), "deploy failed").await.context(says.to_owned())?;
    failed.ensure_says(&["deploy.write_image", says])?;
    ensure!(!failed.last_error().contains('\n'), "more than a sentence: {}", failed.last_error());
    ensure!(failed.0["deploy_step"]["step"] == "write_image", "deploy_step: {}", failed.0["deploy_step"]);
    ensure!(failed.0["maintenance"] == false, "a failed deployment is no maintenance");
    Ok(failed)
}

/// `abort` ends the download of a running write, `undeploy` the power of the node. A rebuild is refused meanwhile, as in Ironic.
async fn stopped(
    (controller, machine): (&Controller, &Machine),
    (mirror, info): (&Mirror, Value),
    root: &OldDisk,
) -> Result<()> {
    controller.set(NODE, json!({"/instance_info": info})).await?;
    controller.provision(NODE, "active").await?;
    writing(controller, NODE, "ROOT", 0.2, LONG).await?;
    let refused = controller.provision(NODE, "rebuild").await;
    ensure!(refused.is_err(), "a rebuild of a node that is being written");
    let asked = Instant::now();
    // Ironic's API takes it from this state since microversion 1.110, which the command line asks with.
    controller.anneal(&["node", "abort", NODE]).await?;
    let ended = wait::until("the agent to hang up", SHORT, async || {
        Ok(mirror.seen().last().and_then(|seen| seen.ended))
    })
    .await?;
    let took = ended.saturating_duration_since(asked);
    ensure!(took < STOPS, "the write went on for {took:?} after the abort");
    let aborted = Node(controller.node_in(NODE, &["deploy failed", "active"], SHORT).await?);
    ensure!(aborted.state() == "deploy failed", "{}: {}", aborted.state(), aborted.last_error());
    ensure!(mirror.seen().len() == 1, "it was asked again: {:?}", mirror.seen());
    root.ensure_unbootable().context("after the abort")?;

    controller.provision(NODE, "active").await?;
    writing(controller, NODE, "ROOT", 0.2, LONG).await.context("after the abort")?;
    let asked = Instant::now();
    controller.provision(NODE, "deleted").await?;
    wait::until("the node to be off", SHORT, async || Ok((!machine.is_on().await).then_some(()))).await?;
    let took = asked.elapsed();
    ensure!(took < STOPS, "the write went on for {took:?} after the undeploy");
    root.ensure_unbootable().context("after the undeploy")?;
    controller.node_in(NODE, &["available"], SHORT).await?;
    Ok(())
}
