use super::*;
use agent_protocol::boot_medium::BondMode;
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

/// A VLAN with IPv6 on a bond of two cards, which also carries networks of other kinds without a tag.
fn layered() -> Value {
    json!({
        "links": [
            {"id": "v", "type": "vlan", "vlan_link": "b", "vlan_id": 7, "vlan_mac_address": "52:54:00:AA:BB:01"},
            {"id": "b", "type": "bond", "ethernet_mac_address": "52:54:00:aa:bb:01", "bond_mode": "active-backup",
                "bond_links": ["l", "m"], "bond_miimon": 50, "bond_xmit_hash_policy": "layer2+3", "mtu": 9000},
            {"id": "l", "type": "phy", "ethernet_mac_address": "52:54:00:aa:bb:01"},
            {"id": "m", "type": "phy", "ethernet_mac_address": "52:54:00:aa:bb:02"},
            {"id": "unused", "type": "phy", "ethernet_mac_address": "52:54:00:aa:bb:03"},
        ],
        "networks": [
            {"id": "n", "link": "v", "network_id": "x", "type": "ipv6", "ip_address": "2001:db8::5",
                "netmask": "ffff:ffff:ffff:ffff::", "routes": [
                    {"network": "::", "netmask": "::", "gateway": "2001:db8::1"},
                    {"network": "2001:db8:9::", "netmask": "ffff:ffff:ffff::", "gateway": "fe80::1"}]},
            {"id": "o", "link": "b", "network_id": "y", "type": "ipv4_dhcp"},
            {"id": "p", "link": "b", "network_id": "z", "type": "ipv6_slaac"},
        ],
        "services": [{"type": "ntp", "address": "2001:db8::3"}],
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
        "dns": ["10.0.0.2", "2001:db8::1"],
    });
    assert_eq!(serde_json::to_value(network).unwrap(), expected);
    assert_eq!(static_network(&json!({})), Ok(None));
    assert_eq!(static_network(&Value::Null), Ok(None));
}

#[test]
fn a_vlan_on_a_bond_with_ipv6_and_servers_that_are_asked() {
    let network = static_network(&layered()).unwrap().unwrap();
    let expected = json!({
        "interfaces": [{
            "mac": "52:54:00:aa:bb:01",
            "mtu": 9000,
            "bond": {"mode": "active-backup", "cards": ["52:54:00:aa:bb:01", "52:54:00:aa:bb:02"], "miimon_ms": 50,
                "hash_policy": "layer2+3"},
            "addresses": [], "routes": [], "dhcp": true, "slaac": true,
            "vlans": [{
                "id": 7,
                "mac": "52:54:00:aa:bb:01",
                "addresses": [{"ip": "2001:db8::5", "prefix": 64}],
                "routes": [
                    {"network": "::", "prefix": 0, "gateway": "2001:db8::1"},
                    {"network": "2001:db8:9::", "prefix": 48, "gateway": "fe80::1"}],
            }],
        }],
        "dns": [],
        "ntp": ["2001:db8::3"],
    });
    assert_eq!(serde_json::to_value(network).unwrap(), expected);
}

#[test]
fn three_servers_of_a_kind_are_asked_at_most() {
    let mut data = data();
    let service = |kind: &str, last: u8| json!({"type": kind, "address": format!("10.0.0.{last}")});
    let services = (1..6).flat_map(|last| [service("dns", last), service("ntp", last)]);
    data["services"] = services.collect();
    let network = static_network(&data).unwrap().unwrap();
    let last = |of: &[std::net::IpAddr]| of.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(last(&network.dns), ["10.0.0.2", "10.0.0.1", "10.0.0.3"]);
    assert_eq!(last(&network.ntp), ["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
}

/// Ironic before 26.0 accepts only the wrong name.
#[test]
fn lacp_has_two_names() {
    for name in ["802.3ad", "802.1ad"] {
        let mut data = layered();
        data["links"][1]["bond_mode"] = json!(name);
        let network = static_network(&data).expect(name).expect("a network");
        let bonds: Vec<_> = network.interfaces.iter().filter_map(|one| one.bond.as_ref()).collect();
        assert_eq!(bonds.iter().map(|bond| bond.mode).collect::<Vec<_>>(), [BondMode::Lacp], "{name}");
    }
}

fn says(sound: &Value, cases: &[(&str, Value, &str)]) {
    for (pointer, value, says) in cases {
        let mut data = sound.clone();
        *data.pointer_mut(pointer).expect(pointer) = value.clone();
        let why = static_network(&data).expect_err(pointer);
        assert!(why.contains(says), "{pointer}: {why}");
    }
}

#[test]
fn what_the_ramdisk_cannot_do_is_refused_by_name() {
    says(
        &data(),
        &[
            ("/links/0/type", json!("wifi"), "links of type wifi"),
            ("/links/0/mtu", json!(100), "100 is no MTU"),
            ("/networks/0/type", json!("ipv6_dhcp"), "networks of type ipv6_dhcp"),
            ("/networks/0/type", json!("ipv4_dhcp"), "routes of a network of type ipv4_dhcp"),
            ("/networks/0/type", json!("ipv6_slaac"), "routes of a network of type ipv6_slaac"),
            ("/networks/0/type", json!("ipv6"), "'10.0.0.5' is no IPv6 address"),
            ("/networks/0/link", json!("gone"), "no link has the id 'gone'"),
            ("/networks/0/netmask", json!("255.0.255.0"), "10.0.0.5 has no netmask"),
            ("/networks/0/ip_address", json!("224.0.0.1"), "224.0.0.1 is no address of a host"),
            ("/networks/1/ip_address", json!("10.9.0.5/33"), "10.9.0.5 has no netmask"),
            ("/networks/0/routes/0/gateway", json!("::1"), "'::1' is no IPv4 address"),
            ("/networks/0/routes/0/gateway", json!("10.0.4.1"), "10.0.4.1 is in no network of the link 'l'"),
            ("/networks/0/routes/0/network", json!("10.1.0.0"), "10.1.0.0/0 is an address in a network"),
            ("/networks", json!([]), "no network"),
            ("/services/0/address", json!("dns.example"), "'dns.example' is no address of a name server"),
        ],
    );
}

#[test]
fn bonds_and_vlans_that_cannot_be_made_are_refused_by_name() {
    says(
        &layered(),
        &[
            ("/links/0/vlan_id", json!(4095), "4095 is no number of a VLAN"),
            ("/links/0/vlan_id", json!(0), "0 is no number of a VLAN"),
            ("/links/0/vlan_link", json!("gone"), "'gone', below the VLAN 'v', is no card and no bond"),
            (
                "/links/4",
                json!({"id": "w", "type": "vlan", "vlan_link": "v", "vlan_id": 8, "vlan_mac_address": "52:54:00:aa:bb:01"}),
                "the VLAN 'w' is on the VLAN 'v'",
            ),
            (
                "/links/4",
                json!({"id": "w", "type": "vlan", "vlan_link": "b", "vlan_id": 7, "vlan_mac_address": "52:54:00:aa:bb:01"}),
                "two links are VLAN 7 of 'b'",
            ),
            ("/links/4/id", json!("m"), "two links have the id 'm'"),
            ("/links/1/bond_mode", json!("802.1q"), "\"802.1q\" is no bond_mode"),
            ("/links/1/bond_mode", Value::Null, "'bond_mode' is missing"),
            ("/links/1/bond_miimon", json!(0), "0 is no bond_miimon"),
            ("/links/1/bond_xmit_hash_policy", json!("layer7"), "\"layer7\" is no bond_xmit_hash_policy"),
            ("/links/1/bond_links", json!([]), "the bond 'b' has no links"),
            ("/links/1/bond_links/0", json!("gone"), "the bond 'b' has the link \"gone\", which is none"),
            ("/links/1/bond_links/0", json!("v"), "the link \"v\": links of type vlan"),
            ("/links/1/bond_links/0", json!("m"), "two links with networks use the card 52:54:00:aa:bb:02"),
            ("/networks/1/link", json!("m"), "two links with networks use the card 52:54:00:aa:bb:02"),
            ("/links/1/mtu", json!(1200), "has an MTU of 1200, and IPv6 needs 1280"),
            ("/networks/0/ip_address", json!("2001:db8::5/129"), "2001:db8::5 has no netmask"),
            ("/networks/0/ip_address", json!("fe80::5%eth0"), "'fe80::5%eth0' is no IPv6 address"),
        ],
    );
    let mut larger = layered();
    larger["links"][0]["mtu"] = json!(9001);
    assert!(static_network(&larger).unwrap_err().contains("the MTU 9001 of the VLAN 'v' is more than"));
}
