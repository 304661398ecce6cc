//! A machine with Secure Boot and Microsoft's keys, as it is sold, boots the ramdisk through Debian's shim and systemd-boot by virtual media, and
//! is cleaned. What the last user's disk has for systemd-boot is not read. A kernel with a changed byte does not boot.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lab::binaries::image_dir;
use lab::controller::{Controller, QUICK_KERNEL};
use lab::disk::Bus;
use lab::fill;
use lab::node::Firmware;
use lab::redfish::media::MediaQuirks;
use lab::site::{Site, SiteNode};
use lab::uefi_variables::SecureBoot;
use serde_json::json;

use crate::disk::OldDisk;
use crate::secure_boot::{LOCKED_DOWN, console, does_not_boot, flip};
use crate::stage::{NO_METADATA, NODE, SETTINGS, SHORT, Stage, cleaned, enrol_redfish};

pub const HTTP: &str = "the same by UEFI HTTP boot from a URL of the BMC";
pub const ABOUT: &str =
    "Secure Boot with Microsoft's keys, through Debian's shim: cleaned; a changed kernel does not boot";

const MEMORY_MIB: u32 = 256;
const SERIAL: &str = "SHIMMED";
const DISK: u64 = 32 << 20;
/// An entry that would be the first in the menu, if systemd-boot read those of the disk. Its kernel is none.
const DECOY: &str = "title THE DISK WAS ASKED\nversion 999\nlinux /decoy\n";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = OldDisk::prepared(&stage.dir, SERIAL, Bus::Sata, DISK, |file| with_entry(&stage.dir, file))?;
    let image = image_of_its_own(&stage)?;
    let (site, node) = sold(&stage, &image, &disk, "redfish-virtual-media").await?;
    let controller = &site.controller;
    let validity = controller.get(&format!("/v1/nodes/{NODE}/validate")).await?;
    let says = validity["boot"]["reason"].as_str().unwrap_or_default();
    ensure!(
        validity["boot"]["result"] == true
            && says.contains("initramfs and kernel command line are not signed"),
        "validate: {}",
        validity["boot"]
    );
    is_cleaned(controller, &node, &disk).await?;

    flip(&image.join("vmlinuz"))?;
    controller.provision(NODE, "manage").await?;
    controller.node_in(NODE, &["manageable"], SHORT).await?;
    does_not_boot(controller, &node, "vmlinuz: Security violation").await
}

/// The same medium from the memory of the firmware, which has downloaded it.
pub async fn by_http(stage: Stage) -> Result<()> {
    let disk = OldDisk::prepared(&stage.dir, SERIAL, Bus::Sata, DISK, |file| with_entry(&stage.dir, file))?;
    let image = image_of_its_own(&stage)?;
    let (site, node) = sold(&stage, &image, &disk, "redfish-https").await?;
    is_cleaned(&site.controller, &node, &disk).await
}

/// A machine with Microsoft's keys and this disk, whose node has the capability and boots by this interface.
async fn sold(stage: &Stage, image: &Path, disk: &OldDisk, interface: &str) -> Result<(Site, SiteNode)> {
    // What the kernel says of its lockdown is a notice.
    let settings = format!("kernel_append = \"{QUICK_KERNEL} loglevel=6\"\n{SETTINGS}{NO_METADATA}");
    let mut site = Site::start_with(&stage.dir, Some(image.to_owned()), &settings).await?;
    let change = |spec: &mut lab::node::NodeSpec| {
        spec.secure_boot = Some(SecureBoot::Microsoft);
        spec.memory_mib = MEMORY_MIB;
    };
    let specs = vec![disk.spec.clone()];
    let node = site.node_like(NODE, Firmware::Uefi, specs, change, MediaQuirks::default()).await?;
    enrol_redfish(&site, &node).await?;
    let capabilities = "boot_mode:uefi,secure_boot:true";
    let changes = json!({"/boot_interface": interface, "/properties/capabilities": capabilities});
    site.controller.set(NODE, changes).await?;
    Ok((site, node))
}

/// Cleans it, under a kernel that is locked down, without a look at what its disk has for systemd-boot.
async fn is_cleaned(controller: &Controller, node: &SiteNode, disk: &OldDisk) -> Result<()> {
    controller.provision(NODE, "provide").await?;
    let after = cleaned(controller, "available").await?;
    after.erased(SERIAL)?;
    disk.ensure_erased()?;
    let said = console(node)?;
    ensure!(said.contains(LOCKED_DOWN), "the kernel is not locked down");
    ensure!(node.bmc.inserted_media().is_empty(), "left in: {:?}", node.bmc.inserted_media());
    Ok(())
}

/// Kernel, initramfs and boot loaders, of which the kernel can be changed.
fn image_of_its_own(stage: &Stage) -> Result<PathBuf> {
    let (from, to) = (image_dir()?.canonicalize()?, stage.dir.join("image"));
    std::fs::create_dir_all(&to)?;
    std::fs::copy(from.join("vmlinuz"), to.join("vmlinuz")).context("vmlinuz")?;
    for name in ["initramfs", "medium"] {
        symlink(from.join(name), to.join(name)).context(name)?;
    }
    Ok(to)
}

/// A disk of old data, with a file system that has an entry for systemd-boot.
fn with_entry(dir: &Path, disk: &Path) -> Result<()> {
    fill::fill(disk, SERIAL, DISK)?;
    let entry = dir.join("decoy.conf");
    std::fs::write(&entry, DECOY)?;
    let entry = entry.to_str().context("the directory is no text")?;
    let image = disk.to_str().context("the directory is no text")?;
    let sectors = (DISK / 512).to_string();
    for words in [
        &["mformat", "-i", image, "-T", &sectors, "::"][..],
        &["mmd", "-i", image, "::/EFI", "::/EFI/BOOT", "::/loader", "::/loader/entries"],
        &["mcopy", "-i", image, entry, "::/loader/entries/decoy.conf"],
        &["mcopy", "-i", image, entry, "::/decoy"],
    ] {
        let output = Command::new(words[0]).args(&words[1..]).output().context(words[0].to_owned())?;
        ensure!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
