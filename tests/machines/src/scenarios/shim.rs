//! A machine with Secure Boot and Microsoft's keys, as it is sold, boots the ramdisk through Debian's shim and systemd-boot by virtual media, and
//! is cleaned. Its TPM proves initramfs and kernel command line, which are not signed. What the last user's disk has for systemd-boot is not
//! read. A kernel with a changed byte does not boot.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lab::binaries::image_dir;
use lab::controller::{Controller, QUICK_KERNEL};
use lab::disk::Bus;
use lab::fill;
use lab::machine::Lasting;
use lab::node::{Boot, Firmware};
use lab::redfish::media::{MediaQuirks, fetch};
use lab::site::{ADDRESS, Site, SiteNode};
use lab::uefi_variables::SecureBoot;
use lab::wait;
use serde_json::json;

use crate::certificate::boot_proof;
use crate::disk::OldDisk;
use crate::node::{Node, history};
use crate::secure_boot::{LOCKED_DOWN, console, does_not_boot, flip};
use crate::stage::{LONG, NO_METADATA, NODE, SETTINGS, SHORT, Stage, cleaned, enrol_redfish, through, verb};

pub const HTTP: &str = "the same by UEFI HTTP boot from a URL of the BMC";
pub const ABOUT: &str = "Secure Boot with Microsoft's keys, through Debian's shim, and a required TPM: cleaned; what was changed gets no token";

const MEMORY_MIB: u32 = 256;
/// What the kernel says of its lockdown is a notice.
const ARGUMENT: &[u8] = b"loglevel=6";
const SERIAL: &str = "SHIMMED";
const DISK: u64 = 32 << 20;
/// An entry that would be the first in the menu, if systemd-boot read those of the disk. Its kernel is none.
const DECOY: &str = "title THE DISK WAS ASKED\nversion 999\nlinux /decoy\n";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = OldDisk::prepared(&stage.dir, SERIAL, Bus::Sata, DISK, |file| with_entry(&stage.dir, file))?;
    let image = image_of_its_own(&stage)?;
    let (site, node) = sold(&stage, &image, &disk, "redfish-virtual-media").await?;
    let controller = &site.controller;
    controller.set(NODE, json!({"/inspect_interface": "agent", "/driver_info/require_tpm": true})).await?;
    let validity = controller.get(&format!("/v1/nodes/{NODE}/validate")).await?;
    let says = validity["boot"]["reason"].as_str().unwrap_or_default();
    ensure!(
        validity["boot"]["result"] == true
            && says.contains("initramfs and kernel command line are not signed. The next inspection records"),
        "validate: {}",
        validity["boot"]
    );
    through(controller, verb("inspect"), "manageable").await?;
    is_cleaned(controller, &node, &disk).await?;
    let proof = boot_proof(controller).await?;
    ensure!(proof["quote_sha256"].as_str().is_some_and(|digest| digest.len() == 64), "certificate: {proof}");
    other_arguments_get_no_token(&stage, controller, &node).await?;

    flip(&image.join("vmlinuz"))?;
    controller.provision(NODE, "manage").await?;
    controller.node_in(NODE, &["manageable"], SHORT).await?;
    // The reason behind it was seen to be `Security violation` in one run and `Access denied` in another.
    does_not_boot(controller, &node, "Error loading \\vmlinuz: ").await
}

/// A stranger who inserts a medium can change what nothing signs: here one kernel argument. The nonce on it is that of the boot.
async fn other_arguments_get_no_token(stage: &Stage, controller: &Controller, node: &SiteNode) -> Result<()> {
    controller.provision(NODE, "manage").await?;
    controller.node_in(NODE, &["manageable"], SHORT).await?;
    controller.provision(NODE, "provide").await?;
    let medium = stage.dir.join("changed.iso");
    let url = wait::until("the boot medium to be inserted", SHORT, async || {
        Ok(node.bmc.inserted_media().into_values().next())
    });
    fetch(&url.await?, ADDRESS.into(), &medium).await?;
    wait::until("the node to be on", SHORT, async || Ok(node.machine.is_on().await.then_some(()))).await?;
    node.machine.power_off().await?;
    change_arguments(&medium)?;
    node.machine.insert_cd(Some(medium)).await?;
    node.machine.choose_boot(Some((Boot::Cd, Lasting::Once))).await?;
    node.machine.power_on().await?;
    let words = "the kernel command line is not the ramdisk's";
    wait::until("the history to name the changed command line", LONG, async || {
        let said = history(controller, NODE).await?;
        Ok(said.iter().any(|event| event.contains(words)).then_some(()))
    })
    .await?;
    controller.provision(NODE, "abort").await?;
    let aborted = Node(controller.node_in(NODE, &["clean failed"], SHORT).await?);
    ensure!(aborted.anneal()["agent"].is_null(), "an agent got a token: {}", aborted.anneal());
    Ok(())
}

/// Another value of a kernel argument, of the same length.
fn change_arguments(medium: &Path) -> Result<()> {
    let mut bytes = std::fs::read(medium)?;
    let at = bytes.windows(ARGUMENT.len()).position(|part| part == ARGUMENT).context("no such argument")?;
    bytes[at + ARGUMENT.len() - 1] = b'5';
    Ok(std::fs::write(medium, bytes)?)
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
    let argument = String::from_utf8_lossy(ARGUMENT);
    let settings = format!("kernel_append = \"{QUICK_KERNEL} {argument}\"\n{SETTINGS}{NO_METADATA}");
    let mut site = Site::start_with(&stage.dir, Some(image.to_owned()), &settings).await?;
    let change = |spec: &mut lab::node::NodeSpec| {
        spec.secure_boot = Some(SecureBoot::Microsoft);
        spec.memory_mib = MEMORY_MIB;
        spec.tpm = true;
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
