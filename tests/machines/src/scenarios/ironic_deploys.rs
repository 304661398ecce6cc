//! A real Ironic, its `direct` interface unchanged, deploys nodes that run our ramdisk. The instance is a Linux that mounts its
//! configuration drive and runs its user data.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use configdrive::Drive;
use lab::disk::Bus;
use lab::efi_image::as_qcow2;
use lab::images::ImageServer;
use lab::linux_image::{self, started};
use lab::node::Firmware;
use lab::site::ADDRESS;
use lab::wait;
use serde_json::json;

use crate::disk::OldDisk;
use crate::ironic_node::IronicNode;
use crate::layers;
use crate::stage::{NODE, SHORT, Stage};

pub const BIOS: &str = "a real Ironic deploys with our agent: raw, then rebuild with qcow2; the instance runs its user data (BIOS)";
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

/// A node with a root disk and one that stays as it is, and a server with images.
struct Room {
    node: IronicNode,
    data: OldDisk,
    images: PathBuf,
    /// Kernel and initramfs of the instance.
    system: PathBuf,
    server: ImageServer,
}

impl Room {
    /// The node is available, without a cleaning.
    async fn new(stage: &Stage, firmware: Firmware) -> Result<Self> {
        let images = stage.dir.join("images");
        std::fs::create_dir(&images)?;
        let system = layers::image(&stage.dir, &[], &[], INSTANCE)?;
        let (root, data) = (stage.disk("ROOT", Bus::Sata, 160)?, stage.disk("DATA", Bus::Nvme, 64)?);
        let disks = [&root, &data].map(|disk| disk.spec.clone()).to_vec();
        let mode =
            if firmware.is_uefi() { "capabilities=boot_mode:uefi" } else { "capabilities=boot_mode:bios" };
        let hint = r#"root_device={"serial": "ROOT"}"#;
        let more = ["--property", mode, "--property", hint, "--automated-clean", "false"];
        let node = IronicNode::enrol(stage, firmware, disks, &more).await?;
        // The address is there now.
        let server = ImageServer::start(ADDRESS, &images).await?;
        node.ask(&["node", "provide", NODE])?;
        node.until_in("available").await?;
        Ok(Self { node, data, images, system, server })
    }

    /// `NAME.raw`.
    fn raw(&self, (name, id): (&str, &str)) -> Result<PathBuf> {
        let file = self.images.join(format!("{name}.raw"));
        linux_image::make(&file, &self.system, name, id)?;
        Ok(file)
    }

    /// Deploys `first.raw`, with user data in parts; Ironic makes the configuration drive.
    async fn deploy(&self, stage: &Stage) -> Result<()> {
        self.raw(FIRST)?;
        let user_data = stage.dir.join("user-data");
        std::fs::write(&user_data, script(FIRST.0))?;
        let user_data = user_data.to_str().context("a path that is text")?;
        let (url, sha256) = (self.server.url("first.raw"), self.server.sha256("first.raw")?);
        let mut words = vec!["node", "deploy", NODE, "--image", &url, "--checksum", &sha256];
        words.extend(["--image-format", "raw", "--hostname", "web-1", "--user-data", user_data]);
        self.node.ask(&words)?;
        self.node.until_in("active").await.map(drop)
    }

    /// Replaces the instance by one of `second.qcow2`, which reads a drive that the agent fetches.
    async fn rebuild(&self) -> Result<()> {
        as_qcow2(&self.raw(SECOND)?, &self.images.join("second.qcow2"))?;
        let parts = json!({"meta_data": {"hostname": "web-2"}, "user_data": script(SECOND.0)});
        let parts = parts.as_object().context("an object")?;
        let drive = Drive::of(parts, uuid::Uuid::from_u128(7), Some(NODE))?;
        std::fs::write(self.images.join("drive"), drive.packed())?;
        let source = format!("image_source={}", self.server.url("second.qcow2"));
        let digest = format!("image_os_hash_value={}", self.server.sha256("second.qcow2")?);
        let mut words = vec!["node", "set", NODE];
        for value in [source.as_str(), &digest, "image_disk_format=qcow2"] {
            words.extend(["--instance-info", value]);
        }
        self.node.ask(&words)?;
        // The form for which `anneal` has no option.
        let body = json!({"target": "rebuild", "configdrive": self.server.url("drive")});
        tokio::task::block_in_place(|| self.node.ironic.provision(NODE, &body))?;
        self.node.until_in("active").await.map(drop)
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
    let room = Room::new(&stage, Firmware::Bios).await?;
    room.deploy(&stage).await?;
    runs(&room.node, FIRST.0, "BIOS", "web-1").await?;
    std::fs::write(&room.node.console, "").context("the console of the first instance")?;
    room.rebuild().await?;
    runs(&room.node, SECOND.0, "BIOS", "web-2").await?;
    room.data.ensure_untouched()
}

pub async fn by_uefi(stage: Stage) -> Result<()> {
    let room = Room::new(&stage, Firmware::Uefi).await?;
    room.deploy(&stage).await?;
    let (node, (name, id)) = (&room.node, FIRST);
    wait::for_line(&node.console, &started(name, id), SHORT)
        .await
        .context("the firmware starts the entry")?;
    runs(node, name, "UEFI", "web-1").await?;

    node.ask(&["node", "undeploy", NODE])?;
    let seen = node.until_in("available").await?;
    ensure!(seen["instance_info"] == json!({}), "of the instance is left: {}", seen["instance_info"]);
    ensure!(!node.machine.is_on().await, "an available node is off");
    room.data.ensure_untouched()
}
