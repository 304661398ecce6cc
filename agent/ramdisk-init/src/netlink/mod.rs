//! Interfaces, addresses and routes through rtnetlink (rtnetlink(7)), by hand: a few messages do
//! not warrant a library, and plain sockets need no `unsafe`.

mod layers;
mod message;

pub use layers::{Bond, add_bond, add_to_bond, add_vlan};

use message::{Message, ask};
use nix::errno::Errno;
use std::net::{IpAddr, Ipv4Addr};

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_NEWROUTE: u16 = 24;
const REQUEST_ACK: u16 = 0x5;
const CREATE_REPLACE: u16 = 0x500;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IFF_UP: u32 = 1;
const IFF_ALLMULTI: u32 = 0x200;
const IFLA_MTU: u16 = 4;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_BROADCAST: u16 = 4;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RTPROT_DHCP: u8 = 16;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RTN_UNICAST: u8 = 1;
/// Metric of routes: this plus the interface's index. Linux gives those of router advertisements 1024.
const METRIC: u32 = 100;

/// An address with its network's prefix length (0 to 32, IPv6: 0 to 128).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address<A = IpAddr> {
    /// The address.
    pub ip: A,
    /// Length of the prefix.
    pub prefix: u8,
}

impl From<Address<Ipv4Addr>> for Address {
    fn from(Address { ip, prefix }: Address<Ipv4Addr>) -> Self {
        Self { ip: ip.into(), prefix }
    }
}

impl Address<Ipv4Addr> {
    fn broadcast(self) -> Ipv4Addr {
        let host = u32::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
        Ipv4Addr::from(u32::from(self.ip) | host)
    }
}

/// The index of an interface.
///
/// # Errors
/// There is none of this name.
pub fn index_of(name: &str) -> nix::Result<u32> {
    nix::net::if_::if_nametoindex(name)
}

/// Bring an interface up.
pub fn link_up(index: u32) -> nix::Result<()> {
    ask(&Message::new(RTM_NEWLINK, REQUEST_ACK, &link_header(index, IFF_UP)))
}

/// Take an interface down.
pub fn link_down(index: u32) -> nix::Result<()> {
    ask(&Message::new(RTM_NEWLINK, REQUEST_ACK, &link_change(index, 0, IFF_UP)))
}

/// Let an interface take frames to all multicast addresses, or only to those that a program has joined.
pub fn all_multicast(index: u32, on: bool) -> nix::Result<()> {
    let flags = if on { IFF_ALLMULTI } else { 0 };
    ask(&Message::new(RTM_NEWLINK, REQUEST_ACK, &link_change(index, flags, IFF_ALLMULTI)))
}

/// Set an interface's MTU in bytes.
pub fn set_mtu(index: u32, mtu: u16) -> nix::Result<()> {
    let message = Message::new(RTM_NEWLINK, REQUEST_ACK, &link_header(index, 0));
    ask(&message.attribute(IFLA_MTU, &u32::from(mtu).to_ne_bytes()))
}

/// Give an interface an address. An address of IPv6 is tentative until the kernel has asked whether another host has it.
pub fn add_address(index: u32, address: impl Into<Address>) -> nix::Result<()> {
    let address = address.into();
    let message = Message::new(RTM_NEWADDR, REQUEST_ACK | CREATE_REPLACE, &address_header(index, address));
    let message = own_address(own_address(message, IFA_LOCAL, address.ip), IFA_ADDRESS, address.ip);
    ask(&match address.ip {
        IpAddr::V4(ip) => {
            let broadcast = Address { ip, prefix: address.prefix }.broadcast();
            message.attribute(IFA_BROADCAST, &broadcast.octets())
        }
        IpAddr::V6(_) => message,
    })
}

/// Take an address away. One that is not there is fine.
pub fn remove_address(index: u32, address: impl Into<Address>) -> nix::Result<()> {
    let address = address.into();
    let message = Message::new(RTM_DELADDR, REQUEST_ACK, &address_header(index, address));
    match ask(&own_address(message, IFA_LOCAL, address.ip)) {
        Err(Errno::EADDRNOTAVAIL) => Ok(()),
        result => result,
    }
}

/// Route everything else through the `gateway` of a lease.
pub fn add_default_route(index: u32, gateway: Ipv4Addr) -> nix::Result<()> {
    let all = Address { ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED), prefix: 0 };
    ask(&route(index, all, gateway.into(), RTPROT_DHCP))
}

/// Route what is for `network` through `gateway`, which is of its family; with the prefix 0 everything else. Of several
/// default routes that of the interface with the lowest index is used.
pub fn add_route(index: u32, network: Address, gateway: IpAddr) -> nix::Result<()> {
    ask(&route(index, network, gateway, RTPROT_STATIC))
}

/// `struct rtmsg`: family, length of the destination's prefix, of the source's, TOS, table, protocol, scope, type, flags.
fn route(index: u32, network: Address, gateway: IpAddr, protocol: u8) -> Message {
    let kind = [RT_TABLE_MAIN, protocol, RT_SCOPE_UNIVERSE, RTN_UNICAST];
    let header = [&[family(network.ip), network.prefix, 0, 0][..], &kind, &[0; 4]].concat();
    let message = Message::new(RTM_NEWROUTE, REQUEST_ACK | CREATE_REPLACE, &header);
    let message = if network.prefix == 0 { message } else { own_address(message, RTA_DST, network.ip) };
    own_address(message, RTA_GATEWAY, gateway)
        .attribute(RTA_OIF, &index.to_ne_bytes())
        .attribute(RTA_PRIORITY, &METRIC.saturating_add(index).to_ne_bytes())
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { AF_INET } else { AF_INET6 }
}

fn own_address(message: Message, kind: u16, address: IpAddr) -> Message {
    match address {
        IpAddr::V4(address) => message.attribute(kind, &address.octets()),
        IpAddr::V6(address) => message.attribute(kind, &address.octets()),
    }
}

/// `struct ifinfomsg` that sets these flags.
fn link_header(index: u32, flags: u32) -> Vec<u8> {
    link_change(index, flags, flags)
}

/// `struct ifinfomsg`: family, pad, type, index, flags, mask of flags to change.
fn link_change(index: u32, flags: u32, mask: u32) -> Vec<u8> {
    [&[0; 4][..], &index.to_ne_bytes(), &flags.to_ne_bytes(), &mask.to_ne_bytes()].concat()
}

/// `struct ifaddrmsg`: family, prefix length, flags, scope, index.
fn address_header(index: u32, address: Address) -> Vec<u8> {
    let start = [family(address.ip), address.prefix, 0, RT_SCOPE_UNIVERSE];
    [&start[..], &index.to_ne_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::message::acknowledged;
    use super::*;

    fn address(text: &str, prefix: u8) -> Address {
        Address { ip: text.parse().expect("an address"), prefix }
    }

    #[test]
    fn messages_have_the_kernels_layout() {
        let of_lease = Address { ip: Ipv4Addr::new(192, 0, 2, 7), prefix: 24 };
        assert_eq!(of_lease.broadcast(), Ipv4Addr::new(192, 0, 2, 255));
        let header = address_header(3, of_lease.into());
        let message = Message::new(RTM_NEWADDR, REQUEST_ACK, &header);
        let message = own_address(message, IFA_LOCAL, of_lease.ip.into());
        let bytes = message.bytes();
        assert_eq!(bytes.len(), 16 + 8 + 8);
        assert_eq!(bytes[..4], 32_u32.to_ne_bytes());
        assert_eq!(bytes[16..24], [2, 24, 0, 0, 3, 0, 0, 0]);
        assert_eq!(bytes[24..], [8, 0, 2, 0, 192, 0, 2, 7]);
        assert_eq!(address_header(3, address("2001:db8::7", 64)), [10, 64, 0, 0, 3, 0, 0, 0]);
    }

    #[test]
    fn a_route_names_its_destination_unless_it_is_the_default() {
        let gateway = "10.0.0.1".parse().expect("an address");
        let to = |ip, prefix| route(3, address(ip, prefix), gateway, RTPROT_STATIC).bytes()[16..].to_vec();
        let routed = to("192.0.2.0", 24);
        let via = [8, 0, 5, 0, 10, 0, 0, 1, 8, 0, 4, 0, 3, 0, 0, 0, 8, 0, 6, 0, 103, 0, 0, 0];
        assert_eq!(routed[..12], [2, 24, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0]);
        assert_eq!(routed[12..20], [8, 0, 1, 0, 192, 0, 2, 0]);
        assert_eq!(routed[20..], via);
        let default = to("0.0.0.0", 0);
        assert_eq!(default[..12], [2, 0, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0]);
        assert_eq!(default[12..], via);
        let six = route(3, address("2001:db8::", 32), "fe80::1".parse().expect("an address"), RTPROT_STATIC);
        let six = &six.bytes()[16..];
        assert_eq!(six[..16], [10, 32, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0, 20, 0, 1, 0]);
        assert_eq!(six[32..36], [20, 0, 5, 0]);
    }

    #[test]
    fn prefixes_of_any_length_have_a_broadcast_address() {
        let ip = Ipv4Addr::new(10, 1, 2, 3);
        assert_eq!(Address { ip, prefix: 32 }.broadcast(), ip);
        assert_eq!(Address { ip, prefix: 0 }.broadcast(), Ipv4Addr::BROADCAST);
    }

    #[test]
    fn the_kernel_says_no_by_number() {
        // An interface that cannot exist: the real kernel answers ENODEV (EPERM when not root).
        let error = link_up(0x7fff_fff0).expect_err("no such interface");
        assert!(matches!(error, Errno::ENODEV | Errno::EPERM), "{error}");
        assert_eq!(acknowledged(&[0; 3]), Err(Errno::EBADMSG));
    }
}
