//! The redfish driver against a BMC by other people, and a machine started by libvirt: power on, boot from the network or from a
//! virtual CD, erase, power off.

use std::net::Ipv4Addr;

use anyhow::{Result, ensure};
use lab::disk::Bus;
use lab::net::udp_ports;
use lab::node::{Firmware, NodeSpec};
use lab::signatures::{Content, OLD_SYSTEM, Table};
use lab::site::{ADDRESS, Site};
use serde_json::json;

use super::virtual_media::{BOOT_PORTS, STATIC, network_data};
use crate::disk::OldDisk;
use crate::judges::sushy::Sushy;
use crate::stage::{NO_METADATA, NODE, SETTINGS, Stage, enrol, through, verb};

pub const ABOUT: &str = "outside judge: sushy-emulator over libvirt, driver redfish";

pub const MEDIA: &str = "the same by virtual media, behind a router and without DHCP";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = old_system(&stage)?;
    let mut site = stage.site("").await?;
    let node = site.node(NODE, Firmware::Bios, vec![disk.spec.clone()]).await?;
    let spec = node.machine.spec();
    let sushy = Sushy::start(spec, &stage.dir, Ipv4Addr::LOCALHOST).await?;
    let info = Sushy::driver_info(Ipv4Addr::LOCALHOST);
    enrol(&site.controller, NODE, "redfish", info, &spec.mac).await?;
    ensure!(!sushy.is_on().await?, "managing a node does not switch it on");
    cleaned(&site, &sushy, spec, &disk).await
}

/// The emulator fetches the medium itself, and gives it to libvirt as a drive of the machine.
pub async fn by_virtual_media(stage: Stage) -> Result<()> {
    let disk = old_system(&stage)?;
    let router = format!("an-route-s{}", std::process::id());
    let mut site = Site::routed(&stage.dir, &router, &format!("{SETTINGS}{NO_METADATA}")).await?;
    let node = site.node(NODE, Firmware::Bios, vec![disk.spec.clone()]).await?;
    let spec = node.machine.spec();
    // Not on loopback: the controller gives the medium to the address at which it manages the BMC.
    let sushy = Sushy::start(spec, &stage.dir, ADDRESS).await?;
    enrol(&site.controller, NODE, "redfish", Sushy::driver_info(ADDRESS), &spec.mac).await?;
    let changes =
        json!({"/boot_interface": "redfish-virtual-media", "/network_data": network_data(&spec.mac)});
    site.controller.set(NODE, changes).await?;
    let ports = udp_ports()?;
    ensure!(!ports.iter().any(|port| BOOT_PORTS.contains(port)), "UDP ports {ports:?} are served");
    cleaned(&site, &sushy, spec, &disk).await?;
    ensure!(sushy.media().await?.is_empty(), "a medium is left in");
    let console = std::fs::read_to_string(spec.serial_log())?;
    ensure!(console.contains(&STATIC.to_string()), "the ramdisk does not say that it has its address");
    Ok(())
}

/// Bootable: without an order to boot from elsewhere, the old system would start.
fn old_system(stage: &Stage) -> Result<OldDisk> {
    stage.disk("OLD", Bus::Sata, 64)?.labelled(Table::Mbr, Content::Data)
}

async fn cleaned(site: &Site, sushy: &Sushy, spec: &NodeSpec, disk: &OldDisk) -> Result<()> {
    let after = through(&site.controller, verb("provide"), "available").await?;
    ensure!(!sushy.is_on().await?, "an available node is off");
    ensure!(after.0["power_state"] == "power off", "{}", after.0["power_state"]);
    let console = std::fs::read_to_string(spec.serial_log())?;
    ensure!(!console.contains(OLD_SYSTEM), "the old system was booted");
    ensure!(console.contains("anneal-agent"), "the ramdisk was not booted");
    disk.ensure_erased()
}
