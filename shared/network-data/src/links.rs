//! The links: network cards, bonds of them, and the VLANs on either.

use super::ip;
use super::json::{list, text};
use agent_protocol::boot_medium::{
    BondMode, HashPolicy, IpConfiguration, StaticBond, StaticInterface, StaticVlan,
};
use mac::Mac;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;

/// Links that are a network card. What stands in their place belongs to virtual machines.
const CARDS: [&str; 9] = ["phy", "bridge", "dvs", "hw_veb", "hyperv", "ovs", "tap", "vhostuser", "vif"];
/// Least and most bytes of an MTU (RFC 791; the largest frames that cards are sold with).
const MTU: std::ops::RangeInclusive<u16> = 576..=9216;
/// Of an interface that names none.
const DEFAULT_MTU: u16 = 1500;
/// Linux switches IPv6 off on an interface with less (RFC 8200, section 5).
const IPV6_MTU: u16 = 1280;
/// VLANs that can be used (IEEE 802.1Q).
const VLANS: std::ops::RangeInclusive<u16> = 1..=4094;
/// What Ironic before 26.0 (and before 24.1.3) calls LACP, which is 802.3ad: it accepts no other name.
const OLD_NAME_OF_LACP: &str = "802.1ad";
/// How often the links of a bond are looked at where nothing says so, in milliseconds; and the least often.
const MIIMON_MS: u32 = 100;
const MIIMON_MOST_MS: u32 = 10_000;

/// The links of `network_data`, each with what the networks add to it.
pub(super) struct Links(Vec<Link>);

/// A card or a bond, and the ids of the VLANs on it, in the order of the interface's.
struct Link {
    id: String,
    interface: StaticInterface,
    vlan_ids: Vec<String>,
}

impl Links {
    /// Those of `network_data`, without addresses.
    pub(super) fn of(data: &Value) -> Result<Self, String> {
        let mut ids = BTreeSet::new();
        for link in list(data, "links") {
            let id = text(link, "id")?;
            if !ids.insert(id) {
                return Err(format!("two links have the id '{id}'"));
            }
        }
        let mut links = Self(Vec::new());
        for link in list(data, "links").filter(|link| link["type"] != "vlan") {
            let interface = if link["type"] == "bond" { bond(link, data)? } else { card(link)? };
            links.0.push(Link { id: text(link, "id")?.to_owned(), interface, vlan_ids: Vec::new() });
        }
        for link in list(data, "links").filter(|link| link["type"] == "vlan") {
            links.add_vlan(link)?;
        }
        Ok(links)
    }

    fn add_vlan(&mut self, link: &Value) -> Result<(), String> {
        let (id, below) = (text(link, "id")?, text(link, "vlan_link")?);
        if self.0.iter().any(|known| known.vlan_ids.iter().any(|vlan| vlan == below)) {
            return Err(format!(
                "the VLAN '{id}' is on the VLAN '{below}', which is not supported for the ramdisk"
            ));
        }
        let under = self.0.iter_mut().find(|known| known.id == below);
        let under =
            under.ok_or_else(|| format!("'{below}', below the VLAN '{id}', is no card and no bond"))?;
        let given = &link["vlan_id"];
        let number = given.as_u64().and_then(|id| u16::try_from(id).ok()).filter(|id| VLANS.contains(id));
        let number = number.ok_or_else(|| {
            format!("{given} is no number of a VLAN ({} to {})", VLANS.start(), VLANS.end())
        })?;
        if under.interface.vlans.iter().any(|known| known.id == number) {
            return Err(format!("two links are VLAN {number} of '{below}'"));
        }
        let most = under.interface.mtu.unwrap_or(DEFAULT_MTU);
        let mtu = mtu(link)?;
        if let Some(mtu) = mtu.filter(|mtu| *mtu > most) {
            return Err(format!("the MTU {mtu} of the VLAN '{id}' is more than that of '{below}', {most}"));
        }
        let mac = mac(link, "vlan_mac_address")?;
        under.interface.vlans.push(StaticVlan { id: number, mac, mtu, ip: IpConfiguration::default() });
        under.vlan_ids.push(id.to_owned());
        Ok(())
    }

    /// What the link with this id carries.
    pub(super) fn ip_of(&mut self, id: &str) -> Result<&mut IpConfiguration, String> {
        for link in &mut self.0 {
            if link.id == id {
                return Ok(&mut link.interface.ip);
            }
            if let Some(at) = link.vlan_ids.iter().position(|vlan| vlan == id) {
                return Ok(&mut link.interface.vlans[at].ip);
            }
        }
        Err(format!("no link has the id '{id}'"))
    }

    /// The interfaces to which networks were added, judged as a whole.
    pub(super) fn used(self) -> Result<Vec<StaticInterface>, String> {
        let mut cards = BTreeSet::new();
        let mut used = Vec::new();
        for Link { id, mut interface, vlan_ids } in self.0 {
            let most = interface.mtu.unwrap_or(DEFAULT_MTU);
            judge(&interface.ip, most, &id)?;
            for (vlan, id) in interface.vlans.iter().zip(&vlan_ids) {
                judge(&vlan.ip, vlan.mtu.unwrap_or(most), id)?;
            }
            interface.vlans.retain(|vlan| !is_empty(&vlan.ip));
            if is_empty(&interface.ip) && interface.vlans.is_empty() {
                continue;
            }
            let own = std::slice::from_ref(&interface.mac);
            for mac in interface.bond.as_ref().map_or(own, |bond| bond.cards.as_slice()) {
                if !cards.insert(mac.clone()) {
                    return Err(format!("two links with networks use the card {mac}"));
                }
            }
            used.push(interface);
        }
        Ok(used)
    }
}

fn is_empty(ip: &IpConfiguration) -> bool {
    ip.addresses.is_empty() && !ip.dhcp && !ip.slaac
}

fn judge(of: &IpConfiguration, mtu: u16, id: &str) -> Result<(), String> {
    let has_ipv6 = of.slaac || of.addresses.iter().any(|address| address.ip.is_ipv6());
    if has_ipv6 && mtu < IPV6_MTU {
        return Err(format!("the link '{id}' has an MTU of {mtu}, and IPv6 needs {IPV6_MTU}"));
    }
    ip::judge(of, id)
}

fn card(link: &Value) -> Result<StaticInterface, String> {
    let kind = text(link, "type")?;
    if !CARDS.contains(&kind) {
        return Err(format!("links of type {kind} are not supported for the ramdisk"));
    }
    Ok(StaticInterface {
        mac: mac(link, "ethernet_mac_address")?,
        mtu: mtu(link)?,
        bond: None,
        ip: IpConfiguration::default(),
        vlans: Vec::new(),
    })
}

fn bond(link: &Value, data: &Value) -> Result<StaticInterface, String> {
    let id = text(link, "id")?;
    let mut cards = Vec::new();
    for card_id in list(link, "bond_links") {
        let of = list(data, "links").find(|other| other["id"] == *card_id);
        let of = of.ok_or_else(|| format!("the bond '{id}' has the link {card_id}, which is none"))?;
        cards.push(card(of).map_err(|why| format!("the bond '{id}' has the link {card_id}: {why}"))?.mac);
    }
    if cards.is_empty() {
        return Err(format!("the bond '{id}' has no links"));
    }
    let miimon = &link["bond_miimon"];
    let miimon_ms = match miimon {
        Value::Null => Some(MIIMON_MS),
        given => given.as_u64().and_then(|ms| u32::try_from(ms).ok()),
    };
    let miimon_ms = miimon_ms.filter(|ms| (1..=MIIMON_MOST_MS).contains(ms));
    let miimon_ms = miimon_ms
        .ok_or_else(|| format!("{miimon} is no bond_miimon of the ramdisk (1 to {MIIMON_MOST_MS} ms)"))?;
    let mode = match &link["bond_mode"] {
        name if name == OLD_NAME_OF_LACP => BondMode::Lacp,
        _ => named::<BondMode>(link, "bond_mode")?.ok_or("'bond_mode' is missing")?,
    };
    let hash_policy = named::<HashPolicy>(link, "bond_xmit_hash_policy")?;
    Ok(StaticInterface {
        mac: mac(link, "ethernet_mac_address")?,
        mtu: mtu(link)?,
        bond: Some(StaticBond { mode, cards, miimon_ms, hash_policy }),
        ip: IpConfiguration::default(),
        vlans: Vec::new(),
    })
}

/// One of the names that the type has.
fn named<T: DeserializeOwned>(link: &Value, name: &str) -> Result<Option<T>, String> {
    match &link[name] {
        Value::Null => Ok(None),
        given => T::deserialize(given).map(Some).map_err(|_| format!("{given} is no {name} of the ramdisk")),
    }
}

fn mac(link: &Value, name: &str) -> Result<String, String> {
    let mac: Mac = text(link, name)?.parse().map_err(|_| "a link has no MAC address".to_owned())?;
    Ok(mac.to_string())
}

fn mtu(link: &Value) -> Result<Option<u16>, String> {
    match &link["mtu"] {
        Value::Null => Ok(None),
        given => {
            let mtu = given.as_u64().and_then(|mtu| u16::try_from(mtu).ok()).filter(|mtu| MTU.contains(mtu));
            let (least, most) = (MTU.start(), MTU.end());
            mtu.map(Some).ok_or_else(|| format!("{given} is no MTU of the ramdisk ({least} to {most})"))
        }
    }
}
