//! The networks of a link: its addresses and routes.

use super::json::{list, text};
use agent_protocol::boot_medium::{IpConfiguration, StaticAddress, StaticRoute};
use ipnet::IpNet;
use serde_json::Value;
use std::net::IpAddr;

/// Add a network of `network_data` to what its link carries.
pub(super) fn add(to: &mut IpConfiguration, network: &Value) -> Result<(), String> {
    let kind = text(network, "type")?;
    let asks = match kind {
        "ipv4" | "ipv6" => {
            to.addresses.push(address(network, kind)?);
            for route in list(network, "routes") {
                to.routes.push(self::route(route, kind)?);
            }
            return Ok(());
        }
        "ipv4_dhcp" => &mut to.dhcp,
        "ipv6_slaac" => &mut to.slaac,
        other => return Err(format!("networks of type {other} are not supported for the ramdisk")),
    };
    if list(network, "routes").next().is_some() {
        return Err(format!(
            "routes of a network of type {kind} are not supported for the ramdisk: its servers name them"
        ));
    }
    *asks = true;
    Ok(())
}

/// Whether all routes of a link can be made.
pub(super) fn judge(of: &IpConfiguration, id: &str) -> Result<(), String> {
    for StaticRoute { gateway, .. } in &of.routes {
        let is_near = |address: &StaticAddress| {
            IpNet::new(address.ip, address.prefix).is_ok_and(|network| network.contains(gateway))
        };
        let is_link_local = matches!(gateway, IpAddr::V6(gateway) if gateway.is_unicast_link_local());
        if !is_link_local && !of.addresses.iter().any(is_near) {
            return Err(format!("the gateway {gateway} is in no network of the link '{id}'"));
        }
    }
    Ok(())
}

/// Without a netmask the address may carry its prefix.
fn address(network: &Value, kind: &str) -> Result<StaticAddress, String> {
    let given = text(network, "ip_address")?;
    let (host, prefix) = match given.split_once('/') {
        Some((host, prefix)) => (host, prefix.parse().ok()),
        None => (given, text(network, "netmask").ok().and_then(|mask| prefix_of(mask, kind))),
    };
    let ip = of_family(host, kind)?;
    if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
        return Err(format!("{ip} is no address of a host"));
    }
    let prefix = prefix.filter(|prefix| IpNet::new(ip, *prefix).is_ok());
    Ok(StaticAddress { ip, prefix: prefix.ok_or_else(|| format!("the address {ip} has no netmask"))? })
}

fn route(route: &Value, kind: &str) -> Result<StaticRoute, String> {
    let mask = text(route, "netmask")?;
    let prefix = prefix_of(mask, kind).ok_or_else(|| format!("'{mask}' is no netmask"))?;
    let network = of_family(text(route, "network")?, kind)?;
    if IpNet::new(network, prefix).is_ok_and(|whole| whole.trunc().addr() != network) {
        return Err(format!(
            "{network}/{prefix} is an address in a network, and a route needs the network's"
        ));
    }
    Ok(StaticRoute { network, prefix, gateway: of_family(text(route, "gateway")?, kind)? })
}

fn of_family(given: &str, kind: &str) -> Result<IpAddr, String> {
    let family = if kind == "ipv6" { "IPv6" } else { "IPv4" };
    let address = given.parse::<IpAddr>().ok().filter(|address| address.is_ipv6() == (kind == "ipv6"));
    address.ok_or_else(|| format!("'{given}' is no {family} address"))
}

fn prefix_of(mask: &str, kind: &str) -> Option<u8> {
    ipnet::ip_mask_to_prefix(of_family(mask, kind).ok()?).ok()
}
