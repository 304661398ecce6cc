//! A node with Secure Boot and its owner's keys boots the signed ramdisk by virtual media and is cleaned, under a kernel that is locked
//! down. A changed byte does not boot, and the signed ramdisk does not obey the controller of a foreign medium.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use lab::binaries::image_dir;
use lab::disk::Bus;
use lab::machine::Lasting;
use lab::node::Boot;
use lab::redfish::media::fetch;
use lab::site::ADDRESS;
use lab::wait;
use serde_json::json;

use crate::secure_boot::{LOCKED_DOWN, SignedSite, console, does_not_boot, flip, until_said};
use crate::stage::{NO_METADATA, NODE, SHORT, Stage, cleaned};

pub const ABOUT: &str =
    "Secure Boot with own keys: cleaned; a changed byte does not boot; a foreign controller is not obeyed";

pub const HTTP: &str = "Secure Boot with own keys, by UEFI HTTP boot from a URL of the BMC: cleaned";

const MEMORY_MIB: u32 = 256;
/// What a medium says about the certificate of its controller.
const NAMED: &[u8] = b"anneal.pin=sha256:";

pub async fn story(stage: Stage) -> Result<()> {
    let sata = stage.disk("SIGNED", Bus::Sata, 32)?;
    let nvme = stage.disk("SIGNED2", Bus::Nvme, 16)?;
    let mut signed = SignedSite::start(&stage, &image_dir()?, "", NO_METADATA).await?;
    let node = signed.node(&[&sata, &nvme], MEMORY_MIB).await?;
    let controller = &signed.site.controller;
    let validity = controller.get(&format!("/v1/nodes/{NODE}/validate")).await?;
    let says = validity["boot"]["reason"].as_str().unwrap_or_default();
    ensure!(says.contains("obeys this controller"), "validate: {}", validity["boot"]);

    controller.provision(NODE, "provide").await?;
    let medium = stage.dir.join("medium.iso");
    let url = wait::until("the boot medium to be inserted", SHORT, async || {
        Ok(node.bmc.inserted_media().into_values().next())
    });
    fetch(&url.await?, ADDRESS.into(), &medium).await?;
    let after = cleaned(controller, "available").await?;
    for (disk, method) in [(&sata, "overwrite-zeroes"), (&nvme, "nvme-format-user-data")] {
        let record = after.erased(disk.serial())?;
        ensure!(record.method.as_deref() == Some(method), "{record:?}");
        disk.ensure_erased()?;
    }
    ensure!(console(&node)?.contains(LOCKED_DOWN), "the kernel is not locked down");
    ensure!(node.bmc.inserted_media().is_empty(), "left in: {:?}", node.bmc.inserted_media());

    // A controller that the ramdisk does not know, with a medium of the owner's own signed program.
    rename_controller(&medium)?;
    node.machine.insert_cd(Some(medium)).await?;
    node.machine.choose_boot(Some((Boot::Cd, Lasting::Once))).await?;
    node.machine.power_on().await?;
    until_said(&node, "does not obey the controller of this boot").await?;
    node.machine.power_off().await?;
    node.machine.insert_cd(None).await?;
    let log = std::fs::read_to_string(controller.config().log())?;
    ensure!(!log.contains("rejected a lookup"), "the ramdisk asked a controller that it does not obey");

    // One byte, in the middle of the program: in its initramfs.
    flip(&signed.program())?;
    controller.provision(NODE, "manage").await?;
    controller.node_in(NODE, &["manageable"], SHORT).await?;
    does_not_boot(controller, &node, "Access Denied").await
}

/// The same program from a URL of the BMC, in the memory that is enough for the other ways.
pub async fn by_http(stage: Stage) -> Result<()> {
    let disk = stage.disk("SIGNED", Bus::Sata, 32)?;
    let mut signed = SignedSite::start(&stage, &image_dir()?, "", NO_METADATA).await?;
    let node = signed.node(&[&disk], MEMORY_MIB).await?;
    let controller = &signed.site.controller;
    controller.set(NODE, json!({"/boot_interface": "redfish-https"})).await?;
    controller.provision(NODE, "provide").await?;
    let after = cleaned(controller, "available").await?;
    after.erased(disk.serial())?;
    disk.ensure_erased()?;
    ensure!(console(&node)?.contains(LOCKED_DOWN), "the kernel is not locked down");
    ensure!(node.machine.http_url().await.is_none(), "the BMC still has the URL");
    Ok(())
}

/// Another fingerprint on a medium. What is signed has the list of controllers under another name.
fn rename_controller(medium: &Path) -> Result<()> {
    let mut bytes = std::fs::read(medium)?;
    let at = bytes.windows(NAMED.len()).position(|part| part == NAMED).context("no pin on the medium")?;
    for digit in &mut bytes[at + NAMED.len()..at + NAMED.len() + 64] {
        *digit = if *digit == b'0' { b'1' } else { b'0' };
    }
    Ok(std::fs::write(medium, bytes)?)
}
