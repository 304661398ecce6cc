//! A UEFI node on a network without IPv4 boots by PXE, and is cleaned.

use anyhow::{Result, ensure};
use lab::binaries::ipxe_dir;
use lab::disk::Bus;
use lab::net;
use lab::node::Firmware;
use lab::redfish::media::MediaQuirks;
use lab::site::{ADDRESS_IPV6, Site};
use lab::wait;
use std::time::Duration;

use crate::stage::{NO_METADATA, NODE, SETTINGS, Stage, cleaned, enrol_redfish};

pub const ABOUT: &str = "PXE by UEFI on a network without IPv4";
const START_LIMIT: Duration = Duration::from_secs(30);
/// What the ramdisk makes of the advertised prefix and the MAC address of the first node.
const ADVERTISED: &str = "fd00:22::";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("SIX", Bus::Sata, 32)?;
    let loaders = format!("loader_dir = {:?}\n", ipxe_dir()?);
    let mut site = Site::ipv6(&stage.dir, &format!("{loaders}{SETTINGS}{NO_METADATA}")).await?;
    // The API answers before the boot services listen.
    let dhcpv6 = async || Ok(net::udp_ports()?.contains(&547).then_some(()));
    wait::until("DHCPv6 is served", START_LIMIT, dhcpv6).await?;
    let ports = net::udp_ports()?;
    ensure!(!ports.contains(&67), "DHCP is served, too: {ports:?}");
    // OVMF would try IPv4 first, for a minute.
    let change = |spec: &mut lab::node::NodeSpec| {
        spec.extra.extend(["-fw_cfg", "name=opt/org.tianocore/IPv4Support,string=n"].map(str::to_owned));
    };
    let node =
        site.node_like(NODE, Firmware::Uefi, vec![disk.spec.clone()], change, MediaQuirks::default()).await?;
    enrol_redfish(&site, &node).await?;
    site.controller.provision(NODE, "provide").await?;
    let after = cleaned(&site.controller, "available").await?;
    after.erased(disk.serial())?;
    disk.ensure_erased()?;

    let console = std::fs::read(node.machine.spec().serial_log())?;
    let console = String::from_utf8_lossy(&console);
    let script = format!("http://[{ADDRESS_IPV6}]:8089/boot/ipxe?mac=");
    let callback = format!("https://[{ADVERTISED}");
    for says in ["PXE over IPv6", script.as_str(), callback.as_str()] {
        ensure!(console.contains(says), "the console of the node does not say {says}");
    }
    Ok(())
}
