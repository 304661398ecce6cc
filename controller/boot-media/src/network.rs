//! A node's `network_data` as the ramdisk takes it. What the ramdisk cannot configure is refused by name, before the node is
//! touched.

use agent_protocol::boot_medium::{StaticAddress, StaticInterface, StaticNetwork, StaticRoute};
use mac::Mac;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};

/// Links that are a network card. What stands in their place belongs to virtual machines.
const CARDS: [&str; 9] = ["phy", "bridge", "dvs", "hw_veb", "hyperv", "ovs", "tap", "vhostuser", "vif"];
/// As many name servers as the C library of the ramdisk asks.
const DNS_MAX: usize = 3;
/// Least and most bytes of an MTU (RFC 791; the largest frames that cards are sold with).
const MTU: std::ops::RangeInclusive<u16> = 576..=9216;

/// The network that `network_data` describes (links, networks, services); `None` where it describes none.
///
/// # Errors
/// What in it is wrong, or is not supported: IPv6, DHCP, VLANs and bonds.
pub fn static_network(data: &Value) -> Result<Option<StaticNetwork>, String> {
    if data.as_object().is_none_or(serde_json::Map::is_empty) {
        return Ok(None);
    }
    let mut interfaces = Vec::new();
    let mut dns = Vec::new();
    for network in list(data, "networks") {
        let id = text(network, "link")?;
        let link = list(data, "links").find(|link| link["id"] == id);
        let mut interface = card(link.ok_or_else(|| format!("no link has the id '{id}'"))?)?;
        match text(network, "type")? {
            "ipv4" => {}
            other => return Err(format!("networks of type {other} are not supported for the ramdisk")),
        }
        interface.addresses.push(address(network)?);
        for route in list(network, "routes") {
            interface.routes.push(self::route(route)?);
            add_servers(&mut dns, route)?;
        }
        match interfaces.iter_mut().find(|known: &&mut StaticInterface| known.mac == interface.mac) {
            Some(known) => {
                known.addresses.append(&mut interface.addresses);
                known.routes.append(&mut interface.routes);
            }
            None => interfaces.push(interface),
        }
    }
    add_servers(&mut dns, data)?;
    if interfaces.is_empty() {
        return Err("it has links, but no network".to_owned());
    }
    dns.truncate(DNS_MAX);
    Ok(Some(StaticNetwork { interfaces, dns }))
}

fn card(link: &Value) -> Result<StaticInterface, String> {
    let kind = text(link, "type")?;
    if !CARDS.contains(&kind) {
        return Err(format!("links of type {kind} are not supported for the ramdisk"));
    }
    let mac: Mac =
        text(link, "ethernet_mac_address")?.parse().map_err(|_| "a link has no MAC address".to_owned())?;
    let mtu = match &link["mtu"] {
        Value::Null => None,
        given => {
            let mtu = given.as_u64().and_then(|mtu| u16::try_from(mtu).ok()).filter(|mtu| MTU.contains(mtu));
            let (least, most) = (MTU.start(), MTU.end());
            Some(mtu.ok_or_else(|| format!("{given} is no MTU of the ramdisk ({least} to {most})"))?)
        }
    };
    Ok(StaticInterface { mac: mac.to_string(), mtu, addresses: Vec::new(), routes: Vec::new() })
}

/// Without a netmask the address may carry its prefix.
fn address(network: &Value) -> Result<StaticAddress, String> {
    let given = text(network, "ip_address")?;
    let (host, prefix) = match given.split_once('/') {
        Some((host, prefix)) => (host, prefix.parse().ok().filter(|prefix| *prefix <= 32)),
        None => (given, text(network, "netmask").ok().and_then(prefix_of)),
    };
    let ip: Ipv4Addr = host.parse().map_err(|_| format!("'{given}' is no IPv4 address"))?;
    let prefix = prefix.ok_or_else(|| format!("the address {ip} has no netmask"))?;
    Ok(StaticAddress { ip, prefix })
}

fn route(route: &Value) -> Result<StaticRoute, String> {
    let address = |name: &str| -> Result<Ipv4Addr, String> {
        let given = text(route, name)?;
        given.parse().map_err(|_| format!("'{given}' is no IPv4 address"))
    };
    let mask = text(route, "netmask")?;
    let prefix = prefix_of(mask).ok_or_else(|| format!("'{mask}' is no netmask"))?;
    Ok(StaticRoute { network: address("network")?, prefix, gateway: address("gateway")? })
}

/// Name servers; those of IPv6 cannot be asked.
fn add_servers(dns: &mut Vec<Ipv4Addr>, of: &Value) -> Result<(), String> {
    for service in list(of, "services").filter(|service| service["type"] == "dns") {
        let given = text(service, "address")?;
        match given.parse() {
            Ok(IpAddr::V4(server)) if !dns.contains(&server) => dns.push(server),
            Ok(_) => {}
            Err(_) => return Err(format!("'{given}' is no address of a name server")),
        }
    }
    Ok(())
}

fn prefix_of(mask: &str) -> Option<u8> {
    let bits = mask.parse::<Ipv4Addr>().ok()?.to_bits();
    let prefix = bits.leading_ones();
    (prefix + bits.trailing_zeros() >= Ipv4Addr::BITS).then(|| u8::try_from(prefix).ok()).flatten()
}

fn list<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    of[name].as_array().into_iter().flatten()
}

fn text<'a>(of: &'a Value, name: &str) -> Result<&'a str, String> {
    of[name].as_str().ok_or_else(|| format!("'{name}' is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn data() -> Value {
        json!({
            "links": [{"id": "l", "type": "phy", "ethernet_mac_address": "52-54-00-AA-BB-01", "mtu": 1400}],
            "networks": [
                {"id": "n", "link": "l", "network_id": "x", "type": "ipv4", "ip_address": "10.0.0.5",
                    "netmask": "255.255.252.0", "routes": [{"network": "0.0.0.0", "netmask": "0.0.0.0",
                        "gateway": "10.0.0.1", "services": [{"type": "dns", "address": "10.0.0.2"}]}]},
                {"id": "m", "link": "l", "network_id": "y", "type": "ipv4", "ip_address": "10.9.0.5/24"},
            ],
            "services": [{"type": "dns", "address": "2001:db8::1"}, {"type": "dns", "address": "10.0.0.2"}],
        })
    }

    #[test]
    fn addresses_routes_and_name_servers() {
        let network = static_network(&data()).unwrap().unwrap();
        let expected = json!({
            "interfaces": [{
                "mac": "52:54:00:aa:bb:01",
                "mtu": 1400,
                "addresses": [{"ip": "10.0.0.5", "prefix": 22}, {"ip": "10.9.0.5", "prefix": 24}],
                "routes": [{"network": "0.0.0.0", "prefix": 0, "gateway": "10.0.0.1"}],
            }],
            "dns": ["10.0.0.2"],
        });
        assert_eq!(serde_json::to_value(network).unwrap(), expected);
        assert_eq!(static_network(&json!({})), Ok(None));
        assert_eq!(static_network(&Value::Null), Ok(None));
    }

    #[test]
    fn what_the_ramdisk_cannot_do_is_refused_by_name() {
        for (pointer, value, says) in [
            ("/links/0/type", json!("vlan"), "links of type vlan"),
            ("/links/0/type", json!("bond"), "links of type bond"),
            ("/links/0/mtu", json!(100), "100 is no MTU"),
            ("/networks/0/type", json!("ipv6"), "networks of type ipv6"),
            ("/networks/0/type", json!("ipv4_dhcp"), "networks of type ipv4_dhcp"),
            ("/networks/0/link", json!("gone"), "no link has the id 'gone'"),
            ("/networks/0/netmask", json!("255.0.255.0"), "10.0.0.5 has no netmask"),
            ("/networks/1/ip_address", json!("10.9.0.5/33"), "10.9.0.5 has no netmask"),
            ("/networks/0/routes/0/gateway", json!("::1"), "'::1' is no IPv4 address"),
            ("/networks", json!([]), "no network"),
        ] {
            let mut data = data();
            *data.pointer_mut(pointer).expect(pointer) = value;
            let why = static_network(&data).unwrap_err();
            assert!(why.contains(says), "{pointer}: {why}");
        }
    }
}
