//! A disk behind a storage controller without a driver. The ramdisk does not see the disk, but it sees the controller:
//! nothing is written, and the node says which one it is. An operator who knows what hangs there may name it.

use anyhow::{Result, ensure};
use lab::disk::Bus;
use lab::node::Firmware;
use serde_json::json;

use crate::stage::{NO_METADATA, NODE, Stage, cleaned, enrol_redfish, held, verb};

pub const ABOUT: &str = "an HBA without a driver fails the erase by its address and ids, unless it is named";

/// AMD's Am53C974, which has no module in the ramdisk (image/modules.txt).
const IDS: &str = "1022:2020";
/// Where QEMU puts it.
const SLOT: &str = "0000:00:1e.0";

pub async fn story(stage: Stage) -> Result<()> {
    let seen = stage.disk("SEEN", Bus::Sata, 16)?;
    let hidden = stage.disk("HIDDEN", Bus::Scsi, 16)?;
    let file = json!({
        "driver": "raw", "node-name": "hidden", "file": {"driver": "file", "filename": hidden.spec.file},
    });
    let extra = [
        "-device",
        "am53c974,id=hba-without-driver,addr=1e.0",
        "-blockdev",
        &file.to_string(),
        "-device",
        "scsi-hd,bus=hba-without-driver.0,drive=hidden",
    ];
    let mut site = stage.site(NO_METADATA).await?;
    let node = site.node_with(NODE, Firmware::Bios, vec![seen.spec.clone()], &extra).await?;
    enrol_redfish(&site, &node).await?;
    let controller = &site.controller;
    controller.provision_with(NODE, verb("provide")).await?;
    held(controller).await?.ensure_says(&["storage controller", SLOT, IDS, "has no driver"])?;
    seen.ensure_untouched()?;
    hidden.ensure_untouched()?;

    let ignored = json!([{"address": SLOT, "ids": IDS, "reason": "its only disk holds no data of tenants"}]);
    controller.set(NODE, json!({"/properties/ignored_controllers": ignored, "/maintenance": false})).await?;
    controller.provision_with(NODE, verb("manage")).await?;
    controller.node_in(NODE, &["manageable"], crate::stage::SHORT).await?;
    controller.provision_with(NODE, verb("provide")).await?;
    let after = cleaned(controller, "available").await?;
    ensure!(after.last_error().is_empty(), "last_error: {}", after.last_error());
    seen.ensure_erased()?;
    hidden.ensure_untouched()
}
