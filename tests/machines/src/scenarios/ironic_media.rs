//! A real Ironic boots our ramdisk by its own virtual media, and cleans the node: from our ISO as it is, with the parameters on a
//! drive next to it, and from an ISO that it makes of our kernel and ramdisk, with a static network in it. Nothing here is our
//! controller.

use anyhow::{Context, Result, ensure};
use lab::binaries::{binary, image_dir};
use lab::controller::QUICK_KERNEL;
use lab::disk::Bus;
use lab::node::Firmware;
use lab::signatures::{Content, Table};
use lab::wait;
use serde_json::json;

use crate::disk::OldDisk;
use crate::ironic_node::{IronicNode, PAGE, Way};
use crate::judges::ironic;
use crate::page::{block, shell};
use crate::stage::{NODE, SHORT, Stage};

pub const ISO: &str =
    "a real Ironic boots our ISO by its virtual media (deploy_iso, UEFI): erased, available";
pub const MADE: &str = "a real Ironic makes an ISO of our kernel and ramdisk, with a static network, and boots it (BIOS): erased, available";

/// What the ramdisk says about the drives that it has read.
const READ: &str = "virtual media: where the parameters and the network are";
/// The node's, where it has one of its own.
const STATIC: &str = "172.22.0.77";
const MAC: &str = "52:54:00:a4:ea:01";

pub async fn from_ready_iso(stage: Stage) -> Result<()> {
    make_iso(&stage).await?;
    let disk = old_system(&stage)?;
    let disks = vec![disk.spec.clone()];
    let node = IronicNode::enrol_by(Way::ReadyIso, &stage, Firmware::Uefi, disks, &[]).await?;
    let read = cleaned(&node).await?;
    ensure!(read.contains("drive=Some(") && read.contains("cd=None"), "{read}");
    disk.ensure_erased()
}

pub async fn from_made_iso(stage: Stage) -> Result<()> {
    let disk = old_system(&stage)?;
    let network = json!({
        "links": [{"id": "nic", "type": "phy", "ethernet_mac_address": MAC}],
        "networks": [{"id": "n", "link": "nic", "network_id": "n", "type": "ipv4", "ip_address": STATIC,
            "netmask": "255.255.255.0", "routes": []}],
        "services": [],
    });
    let more = ["--property", "capabilities=boot_mode:bios", "--network-data", &network.to_string()];
    let disks = vec![disk.spec.clone()];
    let node = IronicNode::enrol_by(Way::MadeIso, &stage, Firmware::Bios, disks, &more).await?;
    let read = cleaned(&node).await?;
    ensure!(read.contains("cd=Some("), "{read}");
    let console = std::fs::read_to_string(&node.console)?;
    ensure!(console.contains(STATIC), "the ramdisk does not say that it has its address");
    disk.ensure_erased()
}

/// The ISO, made and put where Ironic may read it by the page's commands.
async fn make_iso(stage: &Stage) -> Result<()> {
    let (xtask, image, share) = (binary("xtask")?, image_dir()?.canonicalize()?, ironic::share(&stage.dir));
    let commands = block(PAGE, "sh make-iso")?
        .replace("cargo xtask", &xtask.display().to_string())
        .replace("--append '", &format!("--from {} --append '{QUICK_KERNEL} ", image.display()))
        .replace("/usr/share/anneal", &share.display().to_string());
    shell(&stage.dir, &commands).await.context("the page's commands that make the ISO")
}

/// Bootable: without an order to boot from elsewhere, the old system would start.
fn old_system(stage: &Stage) -> Result<OldDisk> {
    stage.disk("OLD", Bus::Sata, 64)?.labelled(Table::Gpt, Content::LvmPhysicalVolume)
}

/// Cleans the node; it is off then, and its media are out. Gives the line about the drives.
async fn cleaned(node: &IronicNode) -> Result<String> {
    node.ask(&["node", "provide", NODE])?;
    node.until_in("available").await?;
    let read = wait::for_line(&node.console, READ, SHORT).await.context("our ramdisk reads the drives")?;
    ensure!(!node.machine.is_on().await, "an available node is off");
    let left = node.bmc.inserted_media();
    ensure!(left.is_empty(), "media are left in: {left:?}");
    Ok(read)
}
