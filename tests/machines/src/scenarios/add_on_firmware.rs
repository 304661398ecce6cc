//! A network card whose driver opens it only with firmware, which the ramdisk does not hold. The inventory names card, driver and file.
//! With the add-on firmware of Debian's package the next boot carries what this node needs, and nothing else; a boot by virtual media
//! then reaches the controller through that card alone.

use anyhow::{Context, Result, ensure};
use lab::binaries::image_dir;
use lab::disk::Bus;
use lab::net::Bridge;
use lab::node::{Firmware, NodeSpec};
use lab::redfish::media::MediaQuirks;
use lab::site::{Site, SiteNode};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::path::PathBuf;

use crate::stage::{NO_METADATA, NODE, Stage, cleaned, enrol_redfish, through, verb};

pub const ABOUT: &str =
    "a network card without its firmware is named; with the add-on it is up, by iPXE and by virtual media";

/// Intel's 82551, which QEMU emulates. Linux gives it the microcode of this file.
const FILE: &str = "e100/d102e_ucode.bin";
const MODALIAS: &str = "pci:v00008086d00001209";
const MAC: &str = "52:54:00:a4:ec:01";
const TAP: &str = "tap-e100";
/// Where it is plugged in.
const SLOT: &str = "0000:00:1d.0";
/// What the node has by virtual media, on that card.
const STATIC: Ipv4Addr = Ipv4Addr::new(172, 22, 0, 60);

pub async fn story(stage: Stage) -> Result<()> {
    let firmware = add_on()?;
    let disk = stage.disk("CARD", Bus::Sata, 32)?;
    let mut site = stage.site(NO_METADATA).await?;
    Bridge::named("br0").tap(TAP)?;
    let specs = vec![disk.spec.clone()];
    let node = site.node_like(NODE, Firmware::Bios, specs, plugged_in, MediaQuirks::default()).await?;
    enrol_redfish(&site, &node).await?;
    site.controller.set(NODE, json!({"/inspect_interface": "agent"})).await?;

    let lacks = inspected(&site).await?;
    let card = &lacks[0];
    ensure!(
        lacks.as_array().is_some_and(|devices| devices.len() == 1)
            && card["address"] == SLOT
            && card["driver"] == "e100"
            && card["firmware"] == json!([FILE])
            && card["modalias"].as_str().is_some_and(|modalias| modalias.starts_with(MODALIAS)),
        "missing firmware: {lacks}"
    );
    let shown = site.controller.anneal(&["node", "inventory", NODE]).await?;
    let row = shown.lines().find(|line| line.starts_with(SLOT) && line.contains(FILE));
    ensure!(shown.contains("LACKS FIRMWARE") && row.is_some(), "anneal node inventory: {shown}");

    with_add_on(&mut site, &firmware).await?;
    let lacks = inspected(&site).await?;
    ensure!(lacks.is_null(), "missing firmware, with the add-on: {lacks}");
    let log = std::fs::read_to_string(site.controller.config().log())?;
    ensure!(log.contains(r#"firmware=["e100.cpio.zst"]"#), "the boot carried other add-ons: {log}");

    by_virtual_media(&site, &node).await?;
    let after = cleaned(&site.controller, "available").await?;
    after.erased(disk.serial())?;
    disk.ensure_erased()?;
    let console = String::from_utf8_lossy(&std::fs::read(node.machine.spec().serial_log())?).into_owned();
    let callback = format!("https://{STATIC}:9999");
    ensure!(console.contains(&callback), "the agent does not say that it is called at {callback}");
    Ok(())
}

/// The directory that `cargo xtask image --firmware` made.
fn add_on() -> Result<PathBuf> {
    let dir = image_dir()?.join("firmware");
    let made = "cargo xtask image --firmware firmware-misc-nonfree makes it";
    let text = std::fs::read_to_string(dir.join("index.json"))
        .with_context(|| format!("{} is missing: {made}", dir.display()))?;
    let index: Value = serde_json::from_str(&text)?;
    let pieces = index["pieces"].as_array().context("no pieces")?;
    ensure!(pieces.iter().any(|piece| piece["module"] == "e100"), "{} has no e100: {made}", dir.display());
    ensure!(pieces.len() > 1, "{} has nothing that the node does not need", dir.display());
    Ok(dir)
}

fn plugged_in(spec: &mut NodeSpec) {
    let cable = format!("tap,id=net-e100,ifname={TAP},script=no,downscript=no");
    let (_, slot) = SLOT.split_at("0000:00:".len());
    let card = format!("i82551,netdev=net-e100,mac={MAC},addr={},romfile=", slot.trim_end_matches(".0"));
    spec.extra.extend(["-netdev", &cable, "-device", &card].map(str::to_owned));
}

/// Inspects the node; what lacks firmware.
async fn inspected(site: &Site) -> Result<Value> {
    through(&site.controller, verb("inspect"), "manageable").await?;
    let found = site.controller.get(&format!("/v1/nodes/{NODE}/inventory")).await?;
    let patch = &found["plugin_data"]["anneal"]["managers"]["generic_hardware_manager"]["extra"];
    ensure!(patch["pci_devices"].is_array(), "no PCI functions: {patch}");
    Ok(patch["missing_firmware"].clone())
}

/// The controller, started again with add-on firmware.
async fn with_add_on(site: &mut Site, firmware: &std::path::Path) -> Result<()> {
    site.controller.kill().await?;
    let file = site.controller.config().file();
    let plain = std::fs::read_to_string(&file)?;
    let line = "consoles = [\"ttyS0\"]\n";
    ensure!(plain.contains(line), "the settings are others: {plain}");
    std::fs::write(&file, plain.replace(line, &format!("{line}firmware_dir = {firmware:?}\n")))?;
    site.controller.restart().await
}

/// Begins a cleaning whose ramdisk has an address on that card alone.
async fn by_virtual_media(site: &Site, node: &SiteNode) -> Result<()> {
    let network = json!({
        "links": [{"id": "card", "type": "phy", "ethernet_mac_address": MAC}],
        "networks": [{
            "id": "near", "link": "card", "network_id": "near", "type": "ipv4", "ip_address": STATIC.to_string(),
            "netmask": "255.255.255.0",
        }],
        "services": [],
    });
    let changes = json!({"/boot_interface": "redfish-virtual-media", "/network_data": network});
    site.controller.set(NODE, changes).await?;
    ensure!(!node.machine.is_on().await, "an inspected node is off");
    site.controller.provision(NODE, "provide").await
}
