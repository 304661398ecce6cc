//! One node and one image, until the node boots it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lab::efi_image::{self, BOOTED, BOOTED_BY_BIOS};
use lab::site::{Site, SiteNode};
use lab::wait;
use serde_json::json;
use std::process::Command;

use super::cases::Case;
use crate::disk::OldDisk;
use crate::node::Node;
use crate::stage::{LONG, NODE, SHORT, Stage, enrol_redfish, through, verb};

pub const WRITE: &str = "deploy.write_image";
const MIB: u64 = 1 << 20;
const LABEL: &str = "debian";
const ID: &str = "5CA1AB1E-0000-4000-8000-00000000C0DE";

/// An available node with one disk full of old data, and an image for it.
pub struct Deployment {
    pub site: Site,
    pub node: SiteNode,
    pub root: OldDisk,
    firmware_is_uefi: bool,
    disk_format: &'static str,
    raw: PathBuf,
    /// The image as it is served.
    packed: PathBuf,
}

impl Deployment {
    /// With so many MiB in the image that cannot be compressed.
    pub async fn prepare(case: &Case, stage: &Stage, filler: u64) -> Result<Self> {
        let deployment = Self::enrolled(case, stage, filler, "").await?;
        let controller = &deployment.site.controller;
        controller.set(NODE, json!({"/automated_clean": false})).await?;
        through(controller, verb("provide"), "available").await?;
        Ok(deployment)
    }

    /// With a controller of these settings; the node is manageable.
    pub async fn enrolled(case: &Case, stage: &Stage, filler: u64, settings: &str) -> Result<Self> {
        let root = stage.disk("ROOT", case.bus, 96)?;
        let (raw, packed) = (stage.dir.join("image.raw"), stage.dir.join("image"));
        efi_image::make(&raw, LABEL, ID, filler)?;
        case.packing.pack(&raw, &packed)?;
        let mut site = stage.site(settings).await?;
        let node = site.node(NODE, case.firmware, vec![root.spec.clone()]).await?;
        enrol_redfish(&site, &node).await?;
        let (firmware_is_uefi, disk_format) = (case.firmware.is_uefi(), case.packing.disk_format());
        Ok(Self { site, node, root, firmware_is_uefi, disk_format, raw, packed })
    }

    /// The image as it is to be served.
    pub fn served(&self) -> Result<Vec<u8>> {
        Ok(std::fs::read(&self.packed)?)
    }

    /// Another image in place of the first, with another label and partition.
    pub fn replace_image(&mut self, case: &Case, label: &str, id: &str) -> Result<()> {
        efi_image::make(&self.raw, label, id, 0)?;
        case.packing.pack(&self.raw, &self.packed)
    }

    /// Asks for the deployment of what is at this URL.
    pub async fn ask(&self, target: &str, url: &str) -> Result<()> {
        let digest = Command::new("sha256sum").arg(&self.packed).output()?;
        let digest = String::from_utf8(digest.stdout)?;
        let digest = digest.split_whitespace().next().context("the output of sha256sum")?;
        let info = json!({
            "image_source": url, "image_os_hash_algo": "sha256", "image_os_hash_value": digest,
            "image_disk_format": self.disk_format, "root_device": {"serial": "ROOT"},
        });
        self.site.controller.set(NODE, json!({"/instance_info": info})).await?;
        self.site.controller.provision(NODE, target).await
    }

    /// The end of the deployment, which must be this state.
    pub async fn ended(&self, state: &str) -> Result<Node> {
        let ended = self.site.controller.node_in(NODE, &["active", "deploy failed"], LONG).await?;
        let ended = Node(ended);
        ensure!(ended.state() == state, "the node is {}: {}", ended.state(), ended.last_error());
        Ok(ended)
    }

    /// It has ended ACTIVE, the node boots the image, and the disk holds it. The node is off then.
    pub async fn ensure_boots(&self) -> Result<Node> {
        let ended = self.ended("active").await?;
        let machine = &self.node.machine;
        // It may have lost its power behind the deployment's end.
        machine.power_on().await?;
        let line = if self.firmware_is_uefi { BOOTED } else { BOOTED_BY_BIOS };
        wait::for_line(&machine.spec().serial_log(), line, SHORT).await.context("the image boots")?;
        machine.power_off().await?;
        ensure_holds(&self.root.spec.file, &self.raw)?;
        Ok(ended)
    }
}

/// Every byte of the image is on the disk, but for its partition tables, which have become those of the disk.
fn ensure_holds(disk: &Path, image: &Path) -> Result<()> {
    let (disk, image) = (File::open(disk)?, File::open(image)?);
    let size = image.metadata()?.len();
    let (mut expected, mut found) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    for mib in 1..size / MIB - 1 {
        image.read_exact_at(&mut expected, mib * MIB)?;
        disk.read_exact_at(&mut found, mib * MIB)?;
        ensure!(expected == found, "MiB {mib} of the disk differs from the image");
    }
    let (mut expected, mut found) = ([0; 440], [0; 440]);
    image.read_exact_at(&mut expected, 0)?;
    disk.read_exact_at(&mut found, 0)?;
    ensure!(expected == found, "the boot sector differs from that of the image");
    Ok(())
}
