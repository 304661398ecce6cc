//! A node that has nothing but IPv6, in a VLAN on a bond of which one cable is out, behind a router, and whose clock is wrong, boots
//! the ramdisk by virtual media and is cleaned.

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::node::{Firmware, NIC};
use lab::redfish::media::MediaQuirks;
use lab::site::{ADDRESS_IPV6, ROUTER_IPV6, Site, SiteNode};
use lab::time_server::TimeServer;
use lab::trunk::{Trunk, TrunkNic};
use lab::wait;
use serde_json::{Value, json};
use std::net::Ipv6Addr;

use crate::stage::{NO_METADATA, NODE, SETTINGS, SHORT, Stage, cleaned, enrol_redfish};

pub const ABOUT: &str = "virtual media with IPv6 alone, in a VLAN on a bond that has lost a card, behind a router, with a wrong clock";

/// The node's.
const STATIC: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x23, 0, 0, 0, 0, 0, 0x50);
/// Its cards.
const CARDS: [&str; 2] = ["52:54:00:a4:ea:01", "52:54:00:a4:eb:01"];
const VLAN: u16 = 7;

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("TAGGED", Bus::Sata, 32)?;
    let router = format!("an-route-6{}", std::process::id());
    let mut site = Site::routed_ipv6(&stage.dir, &router, &format!("{SETTINGS}{NO_METADATA}")).await?;
    let specs = vec![disk.spec.clone()];
    let wired = |spec: &mut lab::node::NodeSpec| {
        spec.trunk = TrunkNic::all(&CARDS);
        spec.extra.extend(["-rtc", "base=2001-01-01T00:00:00"].map(str::to_owned));
    };
    let node = site.node_like(NODE, Firmware::Bios, specs, wired, MediaQuirks::default()).await?;
    let spec = node.machine.spec();
    let trunk = Trunk::start(&stage.dir, &spec.tap, VLAN, &spec.trunk).await?;
    let time = TimeServer::start(ADDRESS_IPV6.into()).await?;
    enrol_redfish(&site, &node).await?;
    refused_by_name(&site).await?;
    let changes = json!({"/boot_interface": "redfish-virtual-media", "/network_data": network_data(VLAN)});
    site.controller.set(NODE, changes).await?;
    let validity = site.controller.get(&format!("/v1/nodes/{NODE}/validate")).await?;
    ensure!(validity["boot"]["result"] == true, "validate: {}", validity["boot"]);

    site.controller.provision(NODE, "provide").await?;
    without_its_first_card(&node).await?;
    let after = cleaned(&site.controller, "available").await?;
    after.erased(disk.serial())?;
    disk.ensure_erased()?;
    ensure!(!node.machine.is_on().await, "an available node is off");

    let log = std::fs::read_to_string(spec.serial_log())?;
    let callback = format!("https://[{STATIC}]:9999");
    ensure!(log.contains(&callback), "the agent does not say that it is called at {callback}");
    let frames = trunk.frames();
    ensure!(frames[0] == 0 && frames[1] > 0, "tagged frames of the cards: {frames:?}");
    ensure!(time.asked() > 0, "the ramdisk has not asked for the time");
    ensure!(log.contains("the clock jumped: it was behind"), "the ramdisk has not set its clock");
    Ok(())
}

/// A network that the ramdisk cannot make is named by `validate`, and the node is not touched.
async fn refused_by_name(site: &Site) -> Result<()> {
    let changes = json!({"/boot_interface": "redfish-virtual-media", "/network_data": network_data(4095)});
    site.controller.set(NODE, changes).await?;
    let validity = site.controller.get(&format!("/v1/nodes/{NODE}/validate")).await?;
    let why = validity["boot"]["reason"].as_str().context("no reason")?;
    ensure!(
        validity["boot"]["result"] == false && why.contains("4095 is no number of a VLAN"),
        "validate: {}",
        validity["boot"]
    );
    Ok(())
}

/// Pulls the cable of the first card as soon as the node is on.
async fn without_its_first_card(node: &SiteNode) -> Result<()> {
    wait::until("the node to be on", SHORT, || async { Ok(node.machine.is_on().await.then_some(())) })
        .await?;
    node.machine.qmp("set_link", json!({"name": NIC, "up": false})).await?;
    Ok(())
}

fn network_data(vlan: u16) -> Value {
    let card = |id: &str, mac: &str| json!({"id": id, "type": "phy", "ethernet_mac_address": mac});
    json!({
        "links": [
            card("one", CARDS[0]),
            card("two", CARDS[1]),
            {"id": "both", "type": "bond", "ethernet_mac_address": CARDS[0], "bond_mode": "active-backup",
                "bond_links": ["one", "two"], "bond_miimon": 50},
            {"id": "tagged", "type": "vlan", "vlan_link": "both", "vlan_id": vlan, "vlan_mac_address": CARDS[0],
                "mtu": 1400},
        ],
        "networks": [{
            "id": "far", "link": "tagged", "network_id": "far", "type": "ipv6",
            "ip_address": STATIC.to_string(), "netmask": "ffff:ffff:ffff:ffff::",
            "routes": [{"network": "::", "netmask": "::", "gateway": ROUTER_IPV6.to_string()}],
        }],
        "services": [
            {"type": "dns", "address": ADDRESS_IPV6.to_string()},
            {"type": "ntp", "address": ADDRESS_IPV6.to_string()},
        ],
    })
}
