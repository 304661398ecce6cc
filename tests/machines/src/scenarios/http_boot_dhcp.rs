//! UEFI firmware learns from DHCP from where it gets iPXE by HTTP, and the node is cleaned.

use anyhow::{Result, ensure};
use lab::disk::Bus;
use lab::node::Firmware;
use lab::redfish::media::MediaQuirks;
use serde_json::json;

use crate::stage::{NO_METADATA, NODE, Stage, cleaned, enrol_redfish};

pub const ABOUT: &str = "UEFI HTTP boot from where DHCP says";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("HTTP", Bus::Sata, 32)?;
    let mut site = stage.site(NO_METADATA).await?;
    let specs = vec![disk.spec.clone()];
    let node = site.node_like(NODE, Firmware::Uefi, specs, |_| {}, MediaQuirks::default()).await?;
    enrol_redfish(&site, &node).await?;
    site.controller.set(NODE, json!({"/boot_interface": "http-ipxe"})).await?;
    let validity = site.controller.get(&format!("/v1/nodes/{NODE}/validate")).await?;
    let says = validity["boot"]["reason"].as_str().unwrap_or_default();
    ensure!(
        validity["boot"]["result"] == true && says.contains("nonce in a boot script"),
        "validate: {}",
        validity["boot"]
    );

    site.controller.provision(NODE, "provide").await?;
    let after = cleaned(&site.controller, "available").await?;
    after.erased(disk.serial())?;
    disk.ensure_erased()?;
    let console = std::fs::read(node.machine.spec().serial_log())?;
    let console = String::from_utf8_lossy(&console);
    for says in ["HTTP Boot over IPv4", "/boot/snponly.efi"] {
        ensure!(console.contains(says), "the console of the node does not say {says}");
    }
    ensure!(!console.contains("PXE over IPv4"), "the firmware has tried PXE");
    Ok(())
}
