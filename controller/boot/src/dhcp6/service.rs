//! The socket of the DHCPv6 service, and the loop over it.

use super::answer::answer;
use super::config::Dhcp6Config;
use crate::BootError;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn6, bind, setsockopt, socket, sockopt};
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::AsRawFd;
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

const SERVER: u16 = 547;
/// All servers and relays of a network (RFC 8415, section 7.1).
const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
/// Longer packets are cut, and then not answered.
const PACKET: usize = 2048;

/// The service with its socket open.
pub struct Dhcp6 {
    config: Dhcp6Config,
    socket: UdpSocket,
}

impl Dhcp6 {
    /// Check the settings and open the socket, on the one interface only.
    ///
    /// # Errors
    /// A setting that makes no sense; no such interface, or no IPv6 on it; no privilege (`CAP_NET_BIND_SERVICE`,
    /// `CAP_NET_RAW`); another DHCPv6 server has the port.
    pub async fn bind(config: Dhcp6Config) -> Result<Self, BootError> {
        config.check()?;
        let socket = open(&config.interface).map_err(|source| BootError::Io {
            service: "dhcp6",
            action: format!("listen on port {SERVER} of {}", config.interface),
            source,
        })?;
        Ok(Self { config, socket })
    }

    /// Answer until `shutdown`.
    ///
    /// # Errors
    /// The socket failed for good (the interface is gone).
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), BootError> {
        tracing::info!(interface = self.config.interface, server = %self.config.server, "dhcp6: listening");
        let mut packet = [0; PACKET];
        loop {
            let received = tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                received = self.socket.recv_from(&mut packet) => received,
            };
            let (length, from) = received.map_err(|source| BootError::Io {
                service: "dhcp6",
                action: format!("receive on {}", self.config.interface),
                source,
            })?;
            self.one(&packet[..length], from).await;
        }
    }

    async fn one(&self, packet: &[u8], from: SocketAddr) {
        // Clients of this network ask from such an address (RFC 8415, section 13.1). To another one an answer could be sent abroad.
        if !matches!(from.ip(), IpAddr::V6(address) if address.is_unicast_link_local()) {
            return;
        }
        let Some(answer) = answer(&self.config, packet) else {
            tracing::debug!(%from, bytes = packet.len(), "dhcp6: not for this server");
            return;
        };
        for address in &answer.declined {
            tracing::warn!(%from, %address, "dhcp6: another host has the address of this client");
        }
        match self.socket.send_to(&answer.packet, from).await {
            Ok(_) => {
                let (addresses, file) = (&answer.addresses, answer.boot_file.as_deref());
                tracing::debug!(%from, ?addresses, file, "dhcp6: answered");
            }
            Err(error) => tracing::warn!(%from, %error, "dhcp6: answer not sent"),
        }
    }
}

/// A UDP socket that hears and speaks on one interface only.
fn open(interface: &str) -> io::Result<UdpSocket> {
    let index = nix::net::if_::if_nametoindex(interface)?;
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Inet6, SockType::Datagram, flags, None)?;
    setsockopt(&fd, sockopt::BindToDevice, &OsString::from(interface))?;
    setsockopt(&fd, sockopt::ReuseAddr, &true)?;
    setsockopt(&fd, sockopt::Ipv6V6Only, &true)?;
    bind(fd.as_raw_fd(), &SockaddrIn6::from(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, SERVER, 0, 0)))?;
    let socket = std::net::UdpSocket::from(fd);
    socket.join_multicast_v6(&ALL_SERVERS, index)?;
    UdpSocket::from_std(socket)
}
