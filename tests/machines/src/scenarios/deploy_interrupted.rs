//! A UEFI node loses power while its ramdisk boots, gets a qcow2 image while the controller is killed, and loses power again in
//! the middle of the writing. What was on the disk at the last checkpoint is not written again, and the node boots the image.

use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, ensure};
use lab::disk::{Bus, Fault};
use lab::efi_image::{self, BOOTED, FILLER};
use lab::images::ImageServer;
use lab::node::Firmware;
use lab::site::{ADDRESS, Site, SiteNode};
use lab::wait;
use serde_json::json;

use crate::node::{Node, count, history, writing};
use crate::stage::{LONG, NODE, SHORT, Stage, enrol_redfish, full_speed, through, verb};

pub const ABOUT: &str =
    "an image is written over a kill of the controller and a power cut, from its checkpoint on, and boots";

const WRITE: &str = "deploy.write_image";
const MIB: u64 = 1 << 20;
/// Of the image that cannot be compressed, in MiB.
const BULK: u64 = 40;
/// Of it, in this share the power is cut: two checkpoints of ten seconds are behind it.
const CUT: f64 = 0.65;
/// What may be written twice: what came within the ten seconds before a checkpoint and the seconds until a heartbeat
/// reports it.
const TWICE: u64 = 16 * MIB;

pub async fn story(stage: Stage) -> Result<()> {
    let root = stage.disk("ROOT", Bus::Sata, 96)?.with(Fault::SlowWrites(MIB));
    let images = stage.dir.join("images");
    std::fs::create_dir(&images)?;
    let raw = stage.dir.join("image.raw");
    efi_image::make(&raw, "debian", "5CA1AB1E-0000-4000-8000-00000000C0DE", BULK)?;
    efi_image::as_qcow2(&raw, &images.join("image.qcow2"))?;

    let mut site = stage.site("").await?;
    let node = site.node(NODE, Firmware::Uefi, vec![root.spec.clone()]).await?;
    enrol_redfish(&site, &node).await?;
    let server = ImageServer::start(ADDRESS, &images).await?;
    site.controller.set(NODE, json!({"/automated_clean": false})).await?;
    through(&site.controller, verb("provide"), "available").await?;
    let info = json!({
        "image_source": server.url("image.qcow2"), "image_os_hash_algo": "sha256",
        "image_os_hash_value": server.sha256("image.qcow2")?, "image_disk_format": "qcow2",
        "root_device": {"serial": "ROOT"},
    });
    site.controller.set(NODE, json!({"/instance_info": info})).await?;
    site.controller.provision(NODE, "active").await?;
    cut_in_boot(&site, &node).await?;

    let (before, seen) = writing(&site.controller, NODE, "ROOT", 0.1, LONG).await?;
    let command = before.anneal()["agent"]["running"].clone();
    site.controller.kill().await?;
    site.controller.restart().await?;
    wait::until("news of the same command", LONG, || async {
        let (during, later) = writing(&site.controller, NODE, "ROOT", 0.0, LONG).await?;
        ensure!(during.anneal()["agent"]["running"] == command, "another command: {}", during.anneal());
        ensure!(later.bytes_done >= seen.bytes_done, "it began again: {seen:?}, then {later:?}");
        Ok((later.bytes_done > seen.bytes_done).then_some(()))
    })
    .await
    .context("after the kill of the controller")?;

    writing(&site.controller, NODE, "ROOT", CUT, LONG).await?;
    node.machine.power_off().await?;
    let mut start = vec![0; 1 << 20];
    File::open(&root.spec.file)?.read_exact_at(&mut start, 0)?;
    ensure!(start.iter().all(|byte| *byte == 0), "a disk that is half written could be booted");
    wait::until("the step to begin again", LONG, || async {
        Ok((count(&site.controller, NODE, &format!("step {WRITE} begins")).await? == 2).then_some(()))
    })
    .await?;
    writing(&site.controller, NODE, "ROOT", 0.0, LONG).await.context("after the power cut")?;
    full_speed(&node.machine, 0).await?;
    let after = Node(site.controller.node_in(NODE, &["active", "deploy failed"], LONG).await?);
    ensure!(after.state() == "active", "{}: {}", after.state(), after.last_error());

    let results = after.results(WRITE);
    ensure!(results.len() == 1, "{}", after.anneal()["run"]);
    let record = &results[0]["result"]["deploy_result"]["image"]["record"];
    let bytes = |name: &str| record[name].as_u64().with_context(|| format!("no {name}: {}", results[0]));
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "MiB"
    )]
    let allowed = bytes("size")? - (CUT * (BULK * MIB) as f64) as u64 + TWICE;
    ensure!(bytes("written")? <= allowed, "more than {allowed} bytes were written after the cut: {record}");
    let events = history(&site.controller, NODE).await?;
    let resumed =
        |event: &String| event.contains("lost power") && event.contains("goes on from its checkpoint");
    ensure!(events.iter().any(resumed), "the interruption is not in the history: {events:?}");
    ensure_same(&raw, &root.spec.file)?;
    wait::for_line(&node.machine.spec().serial_log(), BOOTED, SHORT).await.context("the image boots")?;
    Ok(())
}

/// The node loses its power while its ramdisk boots, and boots it again.
async fn cut_in_boot(site: &Site, node: &SiteNode) -> Result<()> {
    wait::until("the ramdisk to boot", LONG, || async {
        let now = Node::now(&site.controller, NODE).await?;
        let reason = now.anneal()["wait"]["reason"].as_str().unwrap_or_default();
        Ok(reason.contains("the ramdisk to boot").then_some(()))
    })
    .await?;
    node.machine.power_off().await?;
    wait::until("the node to be powered on again", LONG, || async {
        Ok(node.machine.is_on().await.then_some(()))
    })
    .await?;
    let events = history(&site.controller, NODE).await?;
    let lost = "the node lost power while it booted; the node boots again";
    ensure!(events.iter().any(|event| event.contains(lost)), "{events:?}");
    Ok(())
}

/// The filler of the image is on the disk.
fn ensure_same(image: &std::path::Path, disk: &std::path::Path) -> Result<()> {
    let (image, disk) = (File::open(image)?, File::open(disk)?);
    let (mut expected, mut found) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    for mib in FILLER..FILLER + BULK {
        image.read_exact_at(&mut expected, mib * MIB)?;
        disk.read_exact_at(&mut found, mib * MIB)?;
        ensure!(expected == found, "MiB {mib} of the disk differs from the image");
    }
    Ok(())
}
