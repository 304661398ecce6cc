//! Makes the devices of an interface: cards, a bond of them, VLANs.

use super::ipv6;
use crate::netlink::{self, Address};
use agent_protocol::boot_medium::{
    BondMode, HashPolicy, IpConfiguration, StaticBond, StaticInterface, StaticVlan,
};
use agent_protocol::inventory::Interface;
use mac::Mac;
use std::path::Path;

/// A device that was made, with what it carries.
#[derive(Debug)]
pub(super) struct Device<'a> {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) mac: &'a str,
    pub(super) ip: &'a IpConfiguration,
}

/// The devices of an interface, the lowest first. Every part may be repeated after a failure. A bond waits for all its cards,
/// unless it `is_late`: then one is enough.
///
/// # Errors
/// Why not, by the name of what is missing or failed.
pub(super) fn make<'a>(
    present: &[Interface],
    wanted: &'a StaticInterface,
    is_late: bool,
) -> Result<Vec<Device<'a>>, String> {
    let name = match &wanted.bond {
        None => card(present, &wanted.mac)?.to_owned(),
        Some(bond) => self::bond(present, &wanted.mac, bond, is_late)?,
    };
    let index = configure(&name, wanted.mtu, &wanted.ip)?;
    let mut devices = vec![Device { index, name, mac: &wanted.mac, ip: &wanted.ip }];
    for vlan in &wanted.vlans {
        let name = self::vlan(index, vlan)?;
        let index = configure(&name, vlan.mtu, &vlan.ip)?;
        devices.push(Device { index, name, mac: &vlan.mac, ip: &vlan.ip });
    }
    Ok(devices)
}

/// The name of the card with a MAC address.
fn card<'a>(present: &'a [Interface], mac: &str) -> Result<&'a str, String> {
    let found = present.iter().find(|interface| interface.mac_address.eq_ignore_ascii_case(mac));
    found.map(|card| card.name.as_str()).ok_or_else(|| format!("no network card has the address {mac}"))
}

/// The name of the bond, which has all cards that are there.
fn bond(present: &[Interface], mac: &str, wanted: &StaticBond, is_late: bool) -> Result<String, String> {
    let found: Vec<Result<&str, String>> = wanted.cards.iter().map(|mac| card(present, mac)).collect();
    if let Some(Err(missing)) = found.iter().find(|card| card.is_err())
        && (!is_late || found.iter().all(Result::is_err))
    {
        return Err(missing.clone());
    }
    let cards: Vec<&str> = found.into_iter().flatten().collect();
    let name = format!("bond-{}", cards.first().map_or(Ok(0), |card| index(card))?);
    if netlink::index_of(&name).is_err() {
        let how = netlink::Bond {
            mode: mode(wanted.mode),
            miimon: wanted.miimon_ms,
            hash_policy: wanted.hash_policy.map(hash_policy),
        };
        netlink::add_bond(&name, parsed(mac)?, how).map_err(|error| format!("bond {name}: {error}"))?;
    }
    let bond = index(&name)?;
    for card in
        cards.into_iter().filter(|card| !Path::new("/sys/class/net").join(card).join("master").exists())
    {
        // The kernel takes no card that is up.
        let card_index = index(card)?;
        let added = netlink::link_down(card_index).and_then(|()| netlink::add_to_bond(card_index, bond));
        added.map_err(|error| format!("{card} in {name}: {error}"))?;
    }
    Ok(name)
}

/// The name of a VLAN.
fn vlan(below: u32, wanted: &StaticVlan) -> Result<String, String> {
    let name = format!("vlan{below}.{}", wanted.id);
    if netlink::index_of(&name).is_err() {
        let made = netlink::add_vlan(below, wanted.id, &name, parsed(&wanted.mac)?);
        made.map_err(|error| format!("VLAN {name}: {error}"))?;
    }
    Ok(name)
}

/// Bring a device up with what it carries. Its index.
pub(super) fn configure(name: &str, mtu: Option<u16>, carries: &IpConfiguration) -> Result<u32, String> {
    let index = index(name)?;
    let failed = |what: String| move |error: nix::errno::Errno| format!("{name}: {what}: {error}");
    ipv6::accept_advertisements(name, carries.slaac)
        .map_err(|error| format!("{name}: router advertisements: {error}"))?;
    if let Some(mtu) = mtu {
        netlink::set_mtu(index, mtu).map_err(failed(format!("MTU {mtu}")))?;
    }
    netlink::link_up(index).map_err(failed("not up".to_owned()))?;
    for address in &carries.addresses {
        let Address { ip, prefix } = address_of(address.ip, address.prefix);
        netlink::add_address(index, Address { ip, prefix })
            .map_err(failed(format!("address {ip}/{prefix}")))?;
    }
    for route in &carries.routes {
        let network = address_of(route.network, route.prefix);
        let what = format!("route to {}/{} through {}", network.ip, network.prefix, route.gateway);
        netlink::add_route(index, network, route.gateway).map_err(failed(what))?;
    }
    Ok(index)
}

fn address_of(ip: std::net::IpAddr, prefix: u8) -> Address {
    Address { ip, prefix: prefix.min(if ip.is_ipv4() { 32 } else { 128 }) }
}

fn index(name: &str) -> Result<u32, String> {
    netlink::index_of(name).map_err(|error| format!("{name}: {error}"))
}

fn parsed(mac: &str) -> Result<Mac, String> {
    mac.parse::<Mac>().map_err(|error| format!("{mac}: {error}"))
}

/// Linux's number of a mode (linux/if_bonding.h).
fn mode(mode: BondMode) -> u8 {
    match mode {
        BondMode::BalanceRr => 0,
        BondMode::ActiveBackup => 1,
        BondMode::BalanceXor => 2,
        BondMode::Broadcast => 3,
        BondMode::Lacp => 4,
        BondMode::BalanceTlb => 5,
        BondMode::BalanceAlb => 6,
    }
}

/// Linux's number of a policy.
fn hash_policy(policy: HashPolicy) -> u8 {
    match policy {
        HashPolicy::Layer2 => 0,
        HashPolicy::Layer34 => 1,
        HashPolicy::Layer23 => 2,
        HashPolicy::Encap23 => 3,
        HashPolicy::Encap34 => 4,
        HashPolicy::VlanSrcMac => 5,
    }
}
