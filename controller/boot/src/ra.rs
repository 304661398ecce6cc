//! Router advertisements that name no router (RFC 4861). Sent only in answer to a solicitation.
//!
//! iPXE configures IPv6 in addition to IPv4 and waits 16 s for an advertisement before it goes on. Where nodes boot by IPv4, one that
//! offers nothing (router lifetime 0, no prefix, no managed flag) ends the wait and changes nothing for other hosts; a network with a
//! real IPv6 router needs none. Where nodes boot by IPv6, it sends clients to DHCPv6, and names the prefix of the network, from which
//! the ramdisk makes its address.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv6Addr, SocketAddrV6};

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, setsockopt, socket, sockopt};
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

use crate::BootError;

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
const SOLICITATION: u8 = 133;
/// Type 134, code 0, checksum (the kernel's to fill in), hop limit unspecified, no flags, router lifetime
/// 0, reachable time and retransmission timer unspecified (RFC 4861, section 4.2).
const ADVERTISEMENT: [u8; 16] = [134, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Where its flags are, and those that send clients to DHCPv6: for addresses, and for the rest.
const FLAGS: usize = 5;
const MANAGED_AND_OTHER: u8 = 0xc0;
/// Type and length of the prefix option, 64 bits, on this link and for addresses that hosts make; 30 days, of which 7 are preferred,
/// as routers have them; reserved (RFC 4861, section 4.6.2).
const PREFIX: [u8; 16] = [3, 4, 64, 0xc0, 0, 0x27, 0x8d, 0, 0, 9, 0x3a, 0x80, 0, 0, 0, 0];

/// The service with its socket open.
pub struct RouterAdvertiser {
    interface: String,
    index: u32,
    socket: UdpSocket,
    advertisement: Vec<u8>,
}

impl RouterAdvertiser {
    /// Open a raw ICMPv6 socket on `interface`. `network`: an address of the network whose nodes boot by IPv6, if they do.
    ///
    /// # Errors
    /// No such interface, no IPv6 on it, no privilege (`CAP_NET_RAW`).
    pub fn bind(interface: &str, network: Option<Ipv6Addr>) -> Result<Self, BootError> {
        let (index, socket) = open(interface).map_err(|source| BootError::Io {
            service: "ra",
            action: format!("hear ICMPv6 on {interface}"),
            source,
        })?;
        Ok(Self { interface: interface.to_owned(), index, socket, advertisement: advertisement(network) })
    }

    /// Answer solicitations until `shutdown`.
    ///
    /// # Errors
    /// The socket failed for good.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), BootError> {
        tracing::info!(interface = self.interface, "ra: answering router solicitations");
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                done = self.one() => done.map_err(|source| BootError::Io {
                    service: "ra",
                    action: format!("receive on {}", self.interface),
                    source,
                })?,
            }
        }
    }

    async fn one(&self) -> io::Result<()> {
        let mut packet = [0; 1500];
        let (length, _) = self.socket.recv_from(&mut packet).await?;
        if !is_solicitation(&packet[..length]) {
            return Ok(());
        }
        let to = SocketAddrV6::new(ALL_NODES, 0, 0, self.index);
        match self.socket.send_to(&self.advertisement, to).await {
            Ok(_) => tracing::debug!(interface = self.interface, "ra: answered a solicitation"),
            Err(error) => tracing::warn!(interface = self.interface, %error, "ra: answer not sent"),
        }
        Ok(())
    }
}

/// [`RouterAdvertiser::bind`] and [`RouterAdvertiser::run`].
///
/// # Errors
/// As those.
pub async fn serve(
    interface: &str,
    network: Option<Ipv6Addr>,
    shutdown: CancellationToken,
) -> Result<(), BootError> {
    RouterAdvertiser::bind(interface, network)?.run(shutdown).await
}

/// What is sent. Pure.
fn advertisement(network: Option<Ipv6Addr>) -> Vec<u8> {
    let mut bytes = ADVERTISEMENT.to_vec();
    if let Some(network) = network {
        bytes[FLAGS] = MANAGED_AND_OTHER;
        let [a, b, c, d, ..] = network.segments();
        bytes.extend(PREFIX);
        bytes.extend(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).octets());
    }
    bytes
}

/// Type 133, code 0, with the four reserved bytes behind it (RFC 4861, section 4.1).
fn is_solicitation(packet: &[u8]) -> bool {
    packet.len() >= 8 && packet[0] == SOLICITATION && packet[1] == 0
}

/// A raw socket in the clothes of a UDP one, which sends and receives datagrams just the same.
fn open(interface: &str) -> io::Result<(u32, UdpSocket)> {
    let index = nix::net::if_::if_nametoindex(interface)?;
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Inet6, SockType::Raw, flags, SockProtocol::IcmpV6)?;
    setsockopt(&fd, sockopt::BindToDevice, &OsString::from(interface))?;
    // Receivers drop advertisements that could have crossed a router (RFC 4861, section 6.1.2).
    setsockopt(&fd, sockopt::Ipv6MulticastHops, &255)?;
    let socket = std::net::UdpSocket::from(fd);
    // It is for the other hosts.
    socket.set_multicast_loop_v6(false)?;
    socket.join_multicast_v6(&ALL_ROUTERS, index)?;
    Ok((index, UdpSocket::from_std(socket)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_solicitations_are_answered() {
        assert!(is_solicitation(&[133, 0, 1, 2, 0, 0, 0, 0]));
        for packet in
            [&[][..], &[133], &[133, 0, 1, 2], &[134, 0, 1, 2, 0, 0, 0, 0], &[133, 1, 1, 2, 0, 0, 0, 0]]
        {
            assert!(!is_solicitation(packet), "{packet:?}");
        }
    }
}
