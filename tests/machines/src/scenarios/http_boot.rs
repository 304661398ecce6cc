//! A BMC passes a URL of the controller to the UEFI firmware of its node, which downloads the program of its boot medium from it, and the
//! node is cleaned. The URL is taken back, and no other address gets the medium.

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::node::Firmware;
use lab::redfish::media::{MediaQuirks, fetch};
use lab::site::ADDRESS;
use lab::wait;
use serde_json::json;

use crate::stage::{NO_METADATA, NODE, SHORT, Stage, cleaned, enrol_redfish};

pub const ABOUT: &str = "UEFI HTTP boot from a URL that Redfish sets in the BMC";
pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("URL", Bus::Sata, 32)?;
    let mut site = stage.site(NO_METADATA).await?;
    let specs = vec![disk.spec.clone()];
    let node = site.node_like(NODE, Firmware::Uefi, specs, |_| {}, MediaQuirks::default()).await?;
    enrol_redfish(&site, &node).await?;
    site.controller.set(NODE, json!({"/boot_interface": "redfish-https"})).await?;
    let validity = site.controller.get(&format!("/v1/nodes/{NODE}/validate")).await?;
    let says = validity["boot"]["reason"].as_str().unwrap_or_default();
    ensure!(
        validity["boot"]["result"] == true && says.contains("one address"),
        "validate: {}",
        validity["boot"]
    );

    site.controller.provision(NODE, "provide").await?;
    let url =
        wait::until("the BMC to have a URL", SHORT, || async { Ok(node.machine.http_url().await) }).await?;
    ensure!(url.contains("/boot/media/anneal-") && url.ends_with(".efi"), "the URL is {url}");
    let serial = node.machine.spec().serial_log();
    wait::until("the firmware to download the medium", SHORT, || async {
        let log = std::fs::read(&serial).unwrap_or_default();
        Ok(String::from_utf8_lossy(&log).contains(&format!("URI: {url}")).then_some(()))
    })
    .await?;
    // The node has a lease by now, and the controller's own address is another.
    let stolen = fetch(&url, ADDRESS.into(), &stage.dir.join("stolen.efi")).await;
    ensure!(stolen.is_err_and(|error| format!("{error:#}").contains("404")), "a stranger got the medium");

    let after = cleaned(&site.controller, "available").await?;
    after.erased(disk.serial())?;
    disk.ensure_erased()?;
    ensure!(node.machine.http_url().await.is_none(), "the BMC still has the URL");
    ensure!(node.bmc.inserted_media().is_empty(), "media are in: {:?}", node.bmc.inserted_media());
    let late = fetch(&url, ADDRESS.into(), &stage.dir.join("late.efi")).await;
    ensure!(late.is_err_and(|error| format!("{error:#}").contains("404")), "the medium is still served");
    let controller_log = std::fs::read_to_string(site.controller.config().log())?;
    let secret = url.rsplit('/').next().context("no file name")?;
    ensure!(!controller_log.contains(secret), "the name of the medium is in the log");
    Ok(())
}
