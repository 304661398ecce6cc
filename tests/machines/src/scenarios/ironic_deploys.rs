//! A real Ironic, its `direct` interface unchanged, deploys nodes that run our ramdisk. The instance is a Linux that mounts its
//! configuration drive and runs its user data.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use configdrive::Drive;
use lab::disk::Bus;
use lab::efi_image::as_qcow2;
use lab::images::ImageServer;
use lab::linux_image::{self, started};
use lab::node::Firmware;
use lab::site::ADDRESS;
use lab::wait;
use serde_json::{Value, json};

use crate::disk::OldDisk;
use crate::ironic_node::IronicNode;
use crate::layers;
use crate::stage::{NODE, SHORT, Stage};

pub const BIOS: &str =
    "a real Ironic deploys with our agent: raw, then rebuild with qcow2; the instance runs its user data (BIOS)";
pub const UEFI: &str =
    "a real Ironic deploys with our agent: the firmware starts the image by its boot entry; undeploy (UEFI)";

/// Names of the images, and the GUIDs of their EFI system partitions.
const FIRST: (&str, &str) = ("first", "5CA1AB1E-0000-4000-8000-00000000C0DE");
const SECOND: (&str, &str) = ("second", "5CA1AB1E-0000-4000-8000-00000000FEED");

/// Finds the configuration drive as cloud-init does, by the label of its file system.
const INSTANCE: &str = r#"
for module in ahci sd_mod nvme isofs; do
    modprobe $module
done
tries=0
until drive=$(/bin/busybox findfs LABEL=config-2) || [ $tries = 100 ]; do sleep 0.2; tries=$((tries + 1)); done
mkdir -p /run/drive
mount -t iso9660 -o ro "$drive" /run/drive
[ -d /sys/firmware/efi ] && firmware=UEFI || firmware=BIOS
echo "INSTANCE $(grep -o 'instance=.*' /proc/cmdline) STARTED BY $firmware"
echo "METADATA $(cat /run/drive/openstack/latest/meta_data.json)"
sh /run/drive/openstack/latest/user_data
while :; do sleep 60; done
"#;

/// A root disk, one that stays as it is, and a server with images.
struct Room {
    root: OldDisk,
    data: OldDisk,
    images: PathBuf,
    /// Kernel and initramfs of the instance.
    system: PathBuf,
    server: ImageServer,
}

impl Room {
    async fn new(stage: &Stage) -> Result<Self> {
        let images = stage.dir.join("images");
        std::fs::create_dir(&images)?;
        let system = layers::image(&stage.dir, &[], &[], INSTANCE)?;
        let server = ImageServer::start(ADDRESS, &images).await?;
        let root = stage.disk("ROOT", Bus::Sata, 160)?;
        Ok(Self { root, data: stage.disk("DATA", Bus::Nvme, 64)?, images, system, server })
    }

    /// The node, available without a cleaning.
    async fn node(stage: &Stage, firmware: Firmware, disks: [&OldDisk; 2]) -> Result<IronicNode> {
        let disks = disks.map(|disk| disk.spec.clone()).to_vec();
        let mode = if firmware.is_uefi() { "capabilities=boot_mode:uefi" } else { "capabilities=boot_mode:bios" };
        let root = r#"root_device={"serial": "ROOT"}"#;
        let more = ["--property", mode, "--property", root, "--automated-clean", "false"];
        let node = IronicNode::enrol(stage, firmware, disks, &more).await?;
        node.ask(&["node", "provide", NODE])?;
        node.until_in("available").await?;
        Ok(node)
    }

    /// `NAME.raw`.
    fn raw(&self, (name, id): (&str, &str)) -> Result<PathBuf> {
        let file = self.images.join(format!("{name}.raw"));
        linux_image::make(&file, &self.system, name, id)?;
        Ok(file)
    }

    /// Deploys `first.raw`, with user data in parts; Ironic makes the configuration drive.
    async fn deploy(&self, stage: &Stage, node: &IronicNode) -> Result<()> {
        let user_data = stage.dir.join("user-data");
        std::fs::write(&user_data, script(FIRST.0))?;
        let user_data = user_data.to_str().context("a path that is text")?;
        let (url, sha256) = (self.server.url("first.raw"), self.server.sha256("first.raw")?);
        node.ask(&[
            "node", "deploy", NODE, "--image", &url, "--checksum", &sha256, "--image-format", "raw",
            "--hostname", "web-1", "--user-data", user_data,
        ])?;
        node.until_in("active").await.map(drop)
    }
}

/// User data.
fn script(name: &str) -> String {
    format!("#!/bin/sh\necho \"USER DATA OF {name} RUNS\"\n")
}

/// Waits until the instance has said what its user data says.
async fn runs(node: &IronicNode, name: &str, firmware: &str, host: &str) -> Result<()> {
    let said = format!("INSTANCE instance={name} STARTED BY {firmware}");
    wait::for_line(&node.console, &said, SHORT).await.context("the image boots")?;
    let metadata = wait::for_line(&node.console, "METADATA ", SHORT).await?;
    wait::for_line(&node.console, &format!("USER DATA OF {name} RUNS"), SHORT).await?;
    ensure!(metadata.contains(host), "{metadata}");
    ensure!(node.machine.is_on().await, "a deployed node is off");
    Ok(())
}

pub async fn by_bios(stage: Stage) -> Result<()> {
    let room = Room::new(&stage).await?;
    room.raw(FIRST)?;
    as_qcow2(&room.raw(SECOND)?, &room.images.join("second.qcow2"))?;
    let drive = Drive::of(&parts(SECOND.0, "web-2")?, uuid::Uuid::from_u128(7), Some(NODE))?;
    std::fs::write(room.images.join("drive"), drive.packed())?;

    let node = Room::node(&stage, Firmware::Bios, [&room.root, &room.data]).await?;
    room.deploy(&stage, &node).await?;
    runs(&node, FIRST.0, "BIOS", "web-1").await?;

    std::fs::write(&node.console, "").context("the console of the first instance")?;
    let set = |key: &str, value: String| format!("{key}={value}");
    node.ask(&[
        "node", "set", NODE,
        "--instance-info", &set("image_source", room.server.url("second.qcow2")),
        "--instance-info", &set("image_os_hash_value", room.server.sha256("second.qcow2")?),
        "--instance-info", "image_disk_format=qcow2",
    ])?;
    // The only form that `anneal` has no option for: the agent fetches the drive.
    let body = json!({"target": "rebuild", "configdrive": room.server.url("drive")});
    node.ironic.provision(NODE, &body).await?;
    node.until_in("active").await?;
    runs(&node, SECOND.0, "BIOS", "web-2").await?;
    room.data.ensure_untouched()
}

fn parts(name: &str, host: &str) -> Result<serde_json::Map<String, Value>> {
    let parts = json!({"meta_data": {"hostname": host}, "user_data": script(name)});
    parts.as_object().cloned().context("an object")
}

pub async fn by_uefi(stage: Stage) -> Result<()> {
    let room = Room::new(&stage).await?;
    room.raw(FIRST)?;
    let node = Room::node(&stage, Firmware::UefiIpxeRom, [&room.root, &room.data]).await?;
    room.deploy(&stage, &node).await?;
    let (name, id) = FIRST;
    wait::for_line(&node.console, &started(name, id), SHORT).await.context("the firmware starts the entry")?;
    runs(&node, name, "UEFI", "web-1").await?;

    node.ask(&["node", "undeploy", NODE])?;
    let seen = node.until_in("available").await?;
    ensure!(seen["instance_info"] == json!({}), "of the instance is left: {}", seen["instance_info"]);
    ensure!(!node.machine.is_on().await, "an available node is off");
    room.data.ensure_untouched()
}
