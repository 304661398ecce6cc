//! A node behind a router, on a network without DHCP, boots the ramdisk by virtual media with a static address, and is cleaned.
//! Its medium can be read by its BMC alone, and by that only while it is inserted.

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::net::udp_ports;
use lab::node::{CdBus, Firmware};
use lab::redfish::media::{DriveQuirks, MediaQuirks, fetch};
use lab::site::{ADDRESS, ROUTER, Site, SiteNode};
use lab::wait;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

use crate::node::history;
use crate::stage::{NO_METADATA, NODE, SETTINGS, SHORT, Stage, cleaned, enrol_redfish};

pub const UEFI: &str = "virtual media by UEFI, behind a router, with a static address and without DHCP";
pub const BIOS: &str = "the same by BIOS, as a CD, by a BMC with other ways";
pub const USB: &str = "the same by BIOS, as a USB drive";

/// The node's.
pub(super) const STATIC: Ipv4Addr = Ipv4Addr::new(172, 23, 0, 50);
/// Another client on the controller's network.
const STRANGER: Ipv4Addr = Ipv4Addr::new(172, 22, 0, 66);
/// DHCP, TFTP, PXE.
pub(super) const BOOT_PORTS: [u16; 3] = [67, 69, 4011];

pub async fn by_uefi(stage: Stage) -> Result<()> {
    let quirks = MediaQuirks { sources: &["Cd", "UsbCd"], ..MediaQuirks::default() };
    story(stage, "an-route-u", Firmware::Uefi, CdBus::Usb, quirks).await
}

pub async fn by_bios(stage: Stage) -> Result<()> {
    let foreign = DriveQuirks { foreign: Some("http://192.0.2.1/other.iso"), ..DriveQuirks::cd("EXT1") };
    let no_url = DriveQuirks { takes_no_url: true, ..DriveQuirks::cd("RDOC1") };
    let quirks = MediaQuirks {
        below_manager: true,
        drives: vec![foreign, no_url, DriveQuirks::cd("EXT2")],
        refuses: &["Inserted", "WriteProtected"],
        demands: &["TransferProtocolType"],
        lingers: 2,
        ..MediaQuirks::default()
    };
    story(stage, "an-route-b", Firmware::Bios, CdBus::Sata, quirks).await
}

pub async fn by_bios_from_usb(stage: Stage) -> Result<()> {
    let quirks = MediaQuirks { sources: &["Cd", "UsbCd"], ..MediaQuirks::default() };
    story(stage, "an-route-s", Firmware::Bios, CdBus::Usb, quirks).await
}

async fn story(
    stage: Stage,
    router: &str,
    firmware: Firmware,
    bus: CdBus,
    quirks: MediaQuirks,
) -> Result<()> {
    let disk = stage.disk("BEHIND", Bus::Sata, 32)?;
    let foreign = quirks.drives.iter().filter(|drive| drive.foreign.is_some()).count();
    let router = format!("{router}{}", std::process::id());
    let mut site = Site::routed(&stage.dir, &router, &format!("{SETTINGS}{NO_METADATA}")).await?;
    let specs = vec![disk.spec.clone()];
    let node = site.node_like(NODE, firmware, specs, |spec| spec.cd_bus = bus, quirks).await?;
    enrol_redfish(&site, &node).await?;
    let changes = json!({
        "/boot_interface": "redfish-virtual-media",
        "/network_data": network_data(&node.machine.spec().mac),
    });
    site.controller.set(NODE, changes).await?;
    let validity = site.controller.get(&format!("/v1/nodes/{NODE}/validate")).await?;
    let says = validity["boot"]["reason"].as_str().unwrap_or_default();
    ensure!(
        validity["boot"]["result"] == true && says.contains("boot medium"),
        "validate: {}",
        validity["boot"]
    );

    site.controller.provision(NODE, "provide").await?;
    let url = inserted(&node, foreign).await?;
    only_the_bmc_reads(&site, &stage, &url).await?;
    let ports = udp_ports()?;
    ensure!(!ports.iter().any(|port| BOOT_PORTS.contains(port)), "UDP ports {ports:?} are served");
    let after = cleaned(&site.controller, "available").await?;
    after.erased(disk.serial())?;
    disk.ensure_erased()?;
    ensure!(!node.machine.is_on().await, "an available node is off");
    ensure!(node.bmc.inserted_media().len() == foreign, "left in: {:?}", node.bmc.inserted_media());
    let gone = fetch(&url, ADDRESS.into(), &stage.dir.join("late.iso")).await;
    ensure!(gone.is_err_and(|error| format!("{error:#}").contains("404")), "the medium is still served");
    let log = std::fs::read_to_string(node.machine.spec().serial_log())?;
    ensure!(log.contains(&STATIC.to_string()), "the ramdisk does not say that it has its address");
    let controller_log = std::fs::read_to_string(site.controller.config().log())?;
    let secret = url.rsplit('/').next().context("no file name")?;
    ensure!(!controller_log.contains(secret), "the name of the medium is in the log");
    Ok(())
}

/// The URL of the medium, once it is in.
async fn inserted(node: &SiteNode, foreign: usize) -> Result<String> {
    wait::until("the boot medium to be inserted", SHORT, || async {
        let media = node.bmc.inserted_media();
        let ours = media.values().find(|url| url.contains("/boot/media/anneal-"));
        Ok(ours.filter(|_| media.len() == foreign + 1).cloned())
    })
    .await
}

/// Another client gets 404, and the history names it.
async fn only_the_bmc_reads(site: &Site, stage: &Stage, url: &str) -> Result<()> {
    site.add_controller_side_address(STRANGER)?;
    let stolen = fetch(url, STRANGER.into(), &stage.dir.join("stolen.iso")).await;
    ensure!(stolen.is_err_and(|error| format!("{error:#}").contains("404")), "a stranger got the medium");
    let refused = format!("a read of the boot medium from {STRANGER} was refused");
    wait::until("the history to name the stranger", SHORT, || async {
        let events = history(&site.controller, NODE).await?;
        Ok(events.iter().any(|event| event.starts_with(&refused)).then_some(()))
    })
    .await
}

pub(super) fn network_data(mac: &str) -> Value {
    json!({
        "links": [{"id": "nic", "type": "phy", "ethernet_mac_address": mac, "mtu": 1400}],
        "networks": [{
            "id": "far", "link": "nic", "network_id": "far", "type": "ipv4", "ip_address": STATIC.to_string(),
            "netmask": "255.255.255.0",
            "routes": [{"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": ROUTER.to_string()}],
        }],
        "services": [{"type": "dns", "address": "192.0.2.53"}],
    })
}
