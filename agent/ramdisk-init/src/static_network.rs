//! The network that a boot medium brings: no DHCP server is asked.

use super::netlink::{self, Address};
use super::resolver::{NameServers, Resolver};
use agent_protocol::boot_medium::{StaticInterface, StaticNetwork};
use agent_protocol::inventory::Interface;
use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// NICs that appear late are looked for this often.
const LOOK: Duration = Duration::from_millis(250);
/// How long all interfaces are waited for, once one is configured.
const OTHERS: Duration = Duration::from_secs(30);
/// How often a machine without the interfaces says so.
const REPORT: Duration = Duration::from_secs(30);

/// Configure the interfaces of `network` as they appear. Returns when all are configured, or, some time after the machine
/// began to look for them, at least one; until then, never.
pub fn bring_up(network: &StaticNetwork, dns: Resolver, interfaces: fn() -> Vec<Interface>) {
    let began = Instant::now();
    let mut reported = began;
    let mut missing: Vec<&StaticInterface> = network.interfaces.iter().collect();
    let mut configured = 0;
    loop {
        let present = interfaces();
        missing.retain(|wanted| {
            let Some(found) = named(&present, wanted) else { return true };
            match configure(&found.name, wanted) {
                Ok(index) => {
                    tracing::info!(interface = found.name, ?wanted, "interface is configured");
                    dns.leased(index, name_servers(network));
                    configured += 1;
                    false
                }
                Err(error) => {
                    tracing::error!(interface = found.name, %error, "interface not configured");
                    true
                }
            }
        });
        let is_enough = configured > 0 && began.elapsed() >= OTHERS;
        if missing.is_empty() || is_enough {
            if !missing.is_empty() {
                tracing::warn!(?missing, "network interfaces are missing");
            }
            return;
        }
        if reported.elapsed() >= REPORT {
            reported = Instant::now();
            let present: Vec<_> = present.iter().map(|interface| &interface.mac_address).collect();
            tracing::warn!(?missing, ?present, "network interfaces are missing");
        }
        thread::sleep(LOOK);
    }
}

/// The interface with the MAC address that is wanted. Pure.
fn named<'a>(present: &'a [Interface], wanted: &StaticInterface) -> Option<&'a Interface> {
    present.iter().find(|interface| interface.mac_address.eq_ignore_ascii_case(&wanted.mac))
}

fn name_servers(network: &StaticNetwork) -> NameServers {
    std::array::from_fn(|at| network.dns.get(at).copied())
}

/// Every part may be repeated. The index of the interface.
fn configure(name: &str, wanted: &StaticInterface) -> io::Result<u32> {
    let index: u32 = fs::read_to_string(format!("/sys/class/net/{name}/ifindex"))?
        .trim()
        .parse()
        .map_err(|_| io::Error::other("ifindex is not a number"))?;
    if let Some(mtu) = wanted.mtu {
        netlink::set_mtu(index, mtu)?;
    }
    netlink::link_up(index)?;
    for address in &wanted.addresses {
        netlink::add_address(index, Address { ip: address.ip, prefix: address.prefix.min(32) })?;
    }
    for route in &wanted.routes {
        let network = Address { ip: route.network, prefix: route.prefix.min(32) };
        netlink::add_route(index, network, route.gateway)?;
    }
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn interfaces_are_found_by_their_address() {
        let nic = |name: &str, mac: &str| Interface {
            name: name.into(),
            mac_address: mac.into(),
            ..Interface::default()
        };
        let present = [nic("eth0", "52:54:00:00:00:01"), nic("eth1", "52:54:00:00:00:AB")];
        let wanted = |mac: &str| StaticInterface {
            mac: mac.into(),
            mtu: None,
            addresses: Vec::new(),
            routes: Vec::new(),
        };
        assert_eq!(named(&present, &wanted("52:54:00:00:00:ab")).map(|nic| nic.name.as_str()), Some("eth1"));
        assert!(named(&present, &wanted("52:54:00:00:00:02")).is_none());
    }

    #[test]
    fn three_name_servers_at_most_are_asked() {
        let dns: Vec<Ipv4Addr> = (1..6).map(|last| Ipv4Addr::new(10, 0, 0, last)).collect();
        let network = StaticNetwork { interfaces: Vec::new(), dns: dns.clone() };
        assert_eq!(name_servers(&network), [Some(dns[0]), Some(dns[1]), Some(dns[2])]);
        let none = StaticNetwork { interfaces: Vec::new(), dns: Vec::new() };
        assert_eq!(name_servers(&none), [None; 3]);
    }
}
