//! Interfaces, addresses and routes through rtnetlink (rtnetlink(7)), by hand: four messages do
//! not warrant a library, and plain sockets need no `unsafe`.

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

const NLMSG_ERROR: u16 = 2;
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_NEWROUTE: u16 = 24;
const REQUEST_ACK: u16 = 0x5;
const CREATE_REPLACE: u16 = 0x500;
const AF_INET: u8 = 2;
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

/// An IPv4 address with its network's prefix length (0 to 32).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub ip: Ipv4Addr,
    /// Length of the prefix.
    pub prefix: u8,
}

impl Address {
    fn broadcast(self) -> Ipv4Addr {
        let host = u32::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
        Ipv4Addr::from(u32::from(self.ip) | host)
    }
}

/// Bring an interface up.
pub fn link_up(index: u32) -> nix::Result<()> {
    ask(&Message::new(RTM_NEWLINK, REQUEST_ACK, &link_header(index, IFF_UP)))
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

/// Give an interface an address.
pub fn add_address(index: u32, address: Address) -> nix::Result<()> {
    let message = Message::new(RTM_NEWADDR, REQUEST_ACK | CREATE_REPLACE, &address_header(index, address));
    ask(&message
        .attribute(IFA_LOCAL, &address.ip.octets())
        .attribute(IFA_ADDRESS, &address.ip.octets())
        .attribute(IFA_BROADCAST, &address.broadcast().octets()))
}

/// Take an address away. One that is not there is fine.
pub fn remove_address(index: u32, address: Address) -> nix::Result<()> {
    let message = Message::new(RTM_DELADDR, REQUEST_ACK, &address_header(index, address));
    match ask(&message.attribute(IFA_LOCAL, &address.ip.octets())) {
        Err(Errno::EADDRNOTAVAIL) => Ok(()),
        result => result,
    }
}

/// Route everything else through `gateway`. Of several default routes the lowest metric is used.
pub fn add_default_route(index: u32, gateway: Ipv4Addr, metric: u32) -> nix::Result<()> {
    let header = [AF_INET, 0, 0, 0, RT_TABLE_MAIN, RTPROT_DHCP, RT_SCOPE_UNIVERSE, RTN_UNICAST, 0, 0, 0, 0];
    let message = Message::new(RTM_NEWROUTE, REQUEST_ACK | CREATE_REPLACE, &header);
    ask(&message
        .attribute(RTA_GATEWAY, &gateway.octets())
        .attribute(RTA_OIF, &index.to_ne_bytes())
        .attribute(RTA_PRIORITY, &metric.to_ne_bytes()))
}

/// Route what is for `network` through `gateway`; with the prefix 0 everything else.
pub fn add_route(index: u32, network: Address, gateway: Ipv4Addr) -> nix::Result<()> {
    ask(&route(index, network, gateway))
}

/// `struct rtmsg`: family, length of the destination's prefix, of the source's, TOS, table, protocol, scope, type, flags.
fn route(index: u32, network: Address, gateway: Ipv4Addr) -> Message {
    let kind = [RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_UNIVERSE, RTN_UNICAST];
    let header = [&[AF_INET, network.prefix, 0, 0][..], &kind, &[0; 4]].concat();
    let message = Message::new(RTM_NEWROUTE, REQUEST_ACK | CREATE_REPLACE, &header);
    let message =
        if network.prefix == 0 { message } else { message.attribute(RTA_DST, &network.ip.octets()) };
    message.attribute(RTA_GATEWAY, &gateway.octets()).attribute(RTA_OIF, &index.to_ne_bytes())
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
    [&[AF_INET, address.prefix, 0, RT_SCOPE_UNIVERSE][..], &index.to_ne_bytes()].concat()
}

/// A request: `struct nlmsghdr` (length, type, flags, sequence, port), header, attributes.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16, flags: u16, header: &[u8]) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(header);
        Self(bytes).sealed()
    }

    fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self.sealed()
    }

    fn sealed(mut self) -> Self {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self
    }
}

fn ask(message: &Message) -> nix::Result<()> {
    let socket =
        socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    sendto(socket.as_raw_fd(), &message.0, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let mut answer = [0; 4096];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    acknowledged(&answer[..length])
}

/// `struct nlmsgerr`: an error number, negative; 0 is the acknowledgement.
fn acknowledged(answer: &[u8]) -> nix::Result<()> {
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let error = answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, error) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(error)) => Err(Errno::from_raw(error.saturating_neg())),
        _ => Err(Errno::EBADMSG),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_kernels_layout() {
        let address = Address { ip: Ipv4Addr::new(192, 0, 2, 7), prefix: 24 };
        assert_eq!(address.broadcast(), Ipv4Addr::new(192, 0, 2, 255));
        let message = Message::new(RTM_NEWADDR, REQUEST_ACK, &address_header(3, address))
            .attribute(IFA_LOCAL, &address.ip.octets());
        assert_eq!(message.0.len(), 16 + 8 + 8);
        assert_eq!(message.0[..4], 32_u32.to_ne_bytes());
        assert_eq!(message.0[16..24], [2, 24, 0, 0, 3, 0, 0, 0]);
        assert_eq!(message.0[24..], [8, 0, 2, 0, 192, 0, 2, 7]);
    }

    #[test]
    fn a_route_names_its_destination_unless_it_is_the_default() {
        let gateway = Ipv4Addr::new(10, 0, 0, 1);
        let to = |ip, prefix| route(3, Address { ip, prefix }, gateway).0;
        let routed = to(Ipv4Addr::new(192, 0, 2, 0), 24);
        assert_eq!(routed[16..28], [2, 24, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0]);
        assert_eq!(routed[28..], [8, 0, 1, 0, 192, 0, 2, 0, 8, 0, 5, 0, 10, 0, 0, 1, 8, 0, 4, 0, 3, 0, 0, 0]);
        let default = to(Ipv4Addr::UNSPECIFIED, 0);
        assert_eq!(default[16..28], [2, 0, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0]);
        assert_eq!(default[28..], [8, 0, 5, 0, 10, 0, 0, 1, 8, 0, 4, 0, 3, 0, 0, 0]);
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
