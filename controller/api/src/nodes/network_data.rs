//! `network_data` of a node: the form that OpenStack gives instances as their network configuration (links, networks,
//! services). Addresses are checked by parsing them.

use crate::body::python;
use mac::Mac;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// "802.1ad" is what Ironic before 26.0 calls LACP: nodes that were taken over from one have it.
const BOND_MODES: [&str; 8] = [
    "802.3ad",
    "802.1ad",
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "balance-tlb",
    "balance-alb",
];

/// `Err` says what is wrong. An empty object is none, and right.
pub fn check(data: &Value) -> Result<(), String> {
    if data.as_object().is_none_or(|data| data.is_empty()) {
        return Ok(());
    }
    each(required(data, "links")?, "links", link)?;
    each(required(data, "networks")?, "networks", network)?;
    each(required(data, "services")?, "services", |item| service(item, None))
}

fn link(item: &Value) -> Result<(), String> {
    text(item, "id")?;
    if let Some(mtu) = item.get("mtu").filter(|mtu| !mtu.is_null())
        && !mtu.as_f64().is_some_and(|mtu| (1.0..=65_535.0).contains(&mtu))
    {
        return Err(wrong("mtu", mtu));
    }
    if let Some(vif) = item.get("vif_id").filter(|vif| !vif.is_string()) {
        return Err(wrong("vif_id", vif));
    }
    match text(item, "type")? {
        "bond" => {
            mac(item, "ethernet_mac_address")?;
            if !BOND_MODES.contains(&text(item, "bond_mode")?) {
                return Err(wrong("bond_mode", &item["bond_mode"]));
            }
            each(required(item, "bond_links")?, "bond_links", |link| {
                link.is_string().then_some(()).ok_or_else(|| wrong("bond_links", link))
            })
        }
        "vlan" => {
            mac(item, "vlan_mac_address")?;
            text(item, "vlan_link")?;
            let id = required(item, "vlan_id")?;
            id.is_i64().then_some(()).ok_or_else(|| wrong("vlan_id", id))
        }
        "bridge" | "dvs" | "hw_veb" | "hyperv" | "ovs" | "tap" | "vhostuser" | "vif" | "phy" => {
            mac(item, "ethernet_mac_address")
        }
        _ => Err(wrong("type", &item["type"])),
    }
}

fn network(item: &Value) -> Result<(), String> {
    for name in ["id", "link", "network_id"] {
        text(item, name)?;
    }
    let four = match text(item, "type")? {
        "ipv4" | "ipv4_dhcp" => true,
        "ipv6" | "ipv6_dhcp" | "ipv6_slaac" => false,
        _ => return Err(wrong("type", &item["type"])),
    };
    for name in ["ip_address", "netmask"].into_iter().filter(|name| item.get(*name).is_some()) {
        address(item, name, four)?;
    }
    let Some(routes) = item.get("routes") else { return Ok(()) };
    each(routes, "routes", |route| {
        for name in ["network", "netmask", "gateway"] {
            required(route, name)?;
            address(route, name, four)?;
        }
        match route.get("services") {
            Some(services) => each(services, "services", |item| service(item, Some(four))),
            None => Ok(()),
        }
    })
}

fn service(item: &Value, four: Option<bool>) -> Result<(), String> {
    // Ironic knows name servers alone. A time server belongs to no route.
    let kinds: &[&str] = if four.is_none() { &["dns", "ntp"] } else { &["dns"] };
    if !kinds.contains(&text(item, "type")?) {
        return Err(wrong("type", &item["type"]));
    }
    let given = text(item, "address")?;
    let four = four.unwrap_or_else(|| given.parse::<Ipv4Addr>().is_ok());
    address(item, "address", four)
}

/// An address of the family; one of IPv6 may have a prefix length or a zone.
fn address(item: &Value, name: &str, four: bool) -> Result<(), String> {
    let given = text(item, name)?;
    let host = if four { given } else { given.split(['/', '%']).next().unwrap_or_default() };
    let sound = match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => four,
        Ok(IpAddr::V6(_)) => !four,
        Err(_) => false,
    };
    let contiguous = name != "netmask" || mask_is_contiguous(host);
    if sound && contiguous { Ok(()) } else { Err(wrong(name, &item[name])) }
}

fn mask_is_contiguous(mask: &str) -> bool {
    match mask.parse::<IpAddr>() {
        Ok(IpAddr::V4(mask)) => {
            mask.to_bits().leading_ones() + mask.to_bits().trailing_zeros() >= Ipv4Addr::BITS
        }
        Ok(IpAddr::V6(mask)) => {
            mask.to_bits().leading_ones() + mask.to_bits().trailing_zeros() >= Ipv6Addr::BITS
        }
        Err(_) => false,
    }
}

fn mac(item: &Value, name: &str) -> Result<(), String> {
    text(item, name)?.parse::<Mac>().map(drop).map_err(|_| wrong(name, &item[name]))
}

fn required<'a>(item: &'a Value, name: &str) -> Result<&'a Value, String> {
    item.get(name).ok_or_else(|| format!("'{name}' is a required property"))
}

fn text<'a>(item: &'a Value, name: &str) -> Result<&'a str, String> {
    let value = required(item, name)?;
    value.as_str().ok_or_else(|| wrong(name, value))
}

fn each(list: &Value, name: &str, check: impl Fn(&Value) -> Result<(), String>) -> Result<(), String> {
    list.as_array().ok_or_else(|| wrong(name, list))?.iter().try_for_each(check)
}

fn wrong(name: &str, value: &Value) -> String {
    format!("{} is not a valid {name}", python(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sound() -> Value {
        json!({
            "links": [
                {"id": "l", "type": "phy", "ethernet_mac_address": "52:54:00:aa:bb:01", "mtu": 1500},
                {"id": "b", "type": "bond", "ethernet_mac_address": "52-54-00-AA-BB-01", "bond_mode": "802.3ad",
                    "bond_links": ["l"]},
                {"id": "v", "type": "vlan", "vlan_mac_address": "52:54:00:aa:bb:01", "vlan_link": "b",
                    "vlan_id": 7, "mtu": null},
            ],
            "networks": [
                {"id": "n", "link": "l", "network_id": "x", "type": "ipv4", "ip_address": "10.0.0.5",
                    "netmask": "255.255.252.0", "routes": [{"network": "0.0.0.0", "netmask": "0.0.0.0",
                        "gateway": "10.0.0.1", "services": [{"type": "dns", "address": "10.0.0.2"}]}]},
                {"id": "m", "link": "v", "network_id": "y", "type": "ipv6", "ip_address": "2001:db8::5/64",
                    "netmask": "ffff:ffff:ffff:ffff::", "routes": []},
            ],
            "services": [{"type": "dns", "address": "2001:db8::1"}, {"type": "ntp", "address": "10.0.0.3"}],
        })
    }

    #[test]
    fn what_instances_are_given() {
        assert_eq!(check(&sound()), Ok(()));
        assert_eq!(check(&json!({})), Ok(()));
        let mut of_an_old_ironic = sound();
        of_an_old_ironic["links"][1]["bond_mode"] = json!("802.1ad");
        assert_eq!(check(&of_an_old_ironic), Ok(()));
        for (pointer, value, says) in [
            ("/links", json!({}), "links"),
            ("/links/0/type", json!("wifi"), "'wifi' is not a valid type"),
            ("/links/0/ethernet_mac_address", json!("52:54"), "ethernet_mac_address"),
            ("/links/0/mtu", json!(0), "mtu"),
            ("/links/1/bond_mode", json!("best"), "bond_mode"),
            ("/links/1/bond_links/0", json!(3), "bond_links"),
            ("/links/2/vlan_id", json!("7"), "vlan_id"),
            ("/networks/0/ip_address", json!("2001:db8::5"), "ip_address"),
            ("/networks/0/netmask", json!("255.0.255.0"), "netmask"),
            ("/networks/0/routes/0", json!({}), "'network' is a required property"),
            ("/networks/0/routes/0/services/0/type", json!("ntp"), "type"),
            ("/networks/1/type", json!("ipx"), "type"),
            ("/services/0/address", json!("nowhere"), "address"),
            ("/services/1/type", json!("http"), "type"),
            ("/services/0", json!(null), "required"),
        ] {
            let mut data = sound();
            *data.pointer_mut(pointer).expect(pointer) = value;
            let why = check(&data).unwrap_err();
            assert!(why.contains(says), "{pointer}: {why}");
        }
        for name in ["links", "networks", "services"] {
            let mut data = sound();
            data.as_object_mut().expect("an object").remove(name);
            assert_eq!(check(&data), Err(format!("'{name}' is a required property")));
        }
    }
}
