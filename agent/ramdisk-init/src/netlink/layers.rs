//! Interfaces on top of others: VLANs and bonds (linux/if_link.h).

use super::message::{Attributes, Message, ask};
use super::{REQUEST_ACK, RTM_NEWLINK, link_header};
use mac::Mac;

const CREATE_EXCLUSIVE: u16 = 0x600;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VLAN_ID: u16 = 1;
const IFLA_BOND_MODE: u16 = 1;
const IFLA_BOND_MIIMON: u16 = 3;
const IFLA_BOND_XMIT_HASH_POLICY: u16 = 14;

/// How a bond works, in the kernel's numbers (linux/if_bonding.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bond {
    /// Mode.
    pub mode: u8,
    /// How often links are looked at, in milliseconds.
    pub miimon: u32,
    /// What chooses the card of a frame.
    pub hash_policy: Option<u8>,
}

/// Make a VLAN on an interface. `name` has at most 15 bytes.
pub fn add_vlan(below: u32, id: u16, name: &str, mac: Mac) -> nix::Result<()> {
    ask(&vlan(below, id, name, mac))
}

/// Make a bond without cards. `name` has at most 15 bytes.
pub fn add_bond(name: &str, mac: Mac, bond: Bond) -> nix::Result<()> {
    ask(&self::bond(name, mac, bond))
}

/// Make an interface, which has to be down, a card of a bond.
pub fn add_to_bond(index: u32, bond: u32) -> nix::Result<()> {
    let message = Message::new(RTM_NEWLINK, REQUEST_ACK, &link_header(index, 0));
    ask(&message.attribute(IFLA_MASTER, &bond.to_ne_bytes()))
}

fn vlan(below: u32, id: u16, name: &str, mac: Mac) -> Message {
    let data = Attributes::default().attribute(IFLA_VLAN_ID, &id.to_ne_bytes());
    layer("vlan", name, mac, &data).attribute(IFLA_LINK, &below.to_ne_bytes())
}

fn bond(name: &str, mac: Mac, bond: Bond) -> Message {
    let data = Attributes::default()
        .attribute(IFLA_BOND_MODE, &[bond.mode])
        .attribute(IFLA_BOND_MIIMON, &bond.miimon.to_ne_bytes());
    let data = match bond.hash_policy {
        Some(policy) => data.attribute(IFLA_BOND_XMIT_HASH_POLICY, &[policy]),
        None => data,
    };
    layer("bond", name, mac, &data)
}

fn layer(kind: &str, name: &str, mac: Mac, data: &Attributes) -> Message {
    let info = Attributes::default().attribute(IFLA_INFO_KIND, kind.as_bytes()).nested(IFLA_INFO_DATA, data);
    Message::new(RTM_NEWLINK, REQUEST_ACK | CREATE_EXCLUSIVE, &link_header(0, 0))
        .attribute(IFLA_IFNAME, &[name.as_bytes(), &[0]].concat())
        .attribute(IFLA_ADDRESS, &mac.octets())
        .nested(IFLA_LINKINFO, &info)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = Mac::new([0x52, 0x54, 0, 0, 0, 1]);

    /// As `ip link add link eth0 name v address … type vlan id 7` has them, apart from their order.
    #[test]
    fn layers_have_the_kernels_layout() {
        let message = vlan(3, 7, "v", MAC);
        let attributes = &message.bytes()[32..];
        assert_eq!(message.bytes()[..8], [84, 0, 0, 0, 16, 0, 5, 6]);
        assert_eq!(attributes[..8], [6, 0, 3, 0, b'v', 0, 0, 0]);
        assert_eq!(attributes[8..20], [10, 0, 1, 0, 0x52, 0x54, 0, 0, 0, 1, 0, 0]);
        assert_eq!(attributes[20..32], [24, 0, 18, 0, 8, 0, 1, 0, b'v', b'l', b'a', b'n']);
        assert_eq!(attributes[32..44], [12, 0, 2, 0, 6, 0, 1, 0, 7, 0, 0, 0]);
        assert_eq!(attributes[44..], [8, 0, 5, 0, 3, 0, 0, 0]);

        let message = bond("b", MAC, Bond { mode: 4, miimon: 100, hash_policy: Some(1) });
        let data = &message.bytes()[64..];
        assert_eq!(data[..12], [28, 0, 2, 0, 5, 0, 1, 0, 4, 0, 0, 0]);
        assert_eq!(data[12..], [8, 0, 3, 0, 100, 0, 0, 0, 5, 0, 14, 0, 1, 0, 0, 0]);
    }
}
