//! The router of the lab's network: answers IPv6 router solicitations (RFC 4861, sections 4.1 and 4.2).
//!
//! Networks of data centres have one, and iPXE waits 16 s for it before it goes on with IPv4 alone.

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

use anyhow::{Context, Result};
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, setsockopt, socket, sockopt};
use tokio::net::UdpSocket;
use tokio_util::task::AbortOnDropHandle;

const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
const SOLICITATION: u8 = 133;
const ADVERTISEMENT: u8 = 134;

/// A router that has no routes: it advertises that nothing but link-local addresses is to be had here.
#[derive(Debug)]
pub struct Router {
    _task: AbortOnDropHandle<()>,
}

impl Router {
    /// Answers on this interface until dropped.
    ///
    /// # Errors
    /// When we are not root, or the interface does not exist.
    pub fn start(interface: &str) -> Result<Self> {
        let index = if_nametoindex(interface).with_context(|| format!("no interface {interface}"))?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(AddressFamily::Inet6, SockType::Raw, flags, SockProtocol::IcmpV6)
            .context("cannot open a raw socket")?;
        // Joined by a UDP socket, since only std's call takes the interface: the interface then lets
        // the packets in, and a raw socket sees all that come in.
        let member = std::net::UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).context("cannot open a socket")?;
        member.join_multicast_v6(&ALL_ROUTERS, index).context("cannot listen for router solicitations")?;
        // Receivers drop what has passed a router: hop limit 255 (RFC 4861, section 6.1.2).
        setsockopt(&fd, sockopt::Ipv6Ttl, &255)?;
        // A raw socket is used through the same calls as a UDP socket.
        let socket = UdpSocket::from_std(std::net::UdpSocket::from(fd))?;
        let task = tokio::spawn(async move {
            let _member = member;
            if let Err(error) = answer(socket, index).await {
                tracing::warn!(%error, "the lab's router stopped");
            }
        });
        Ok(Self { _task: AbortOnDropHandle::new(task) })
    }
}

async fn answer(socket: UdpSocket, index: u32) -> std::io::Result<()> {
    let mut advertisement = [0; 16];
    advertisement[0] = ADVERTISEMENT;
    // Hop limit for hosts; lifetime 0: not a default router. The kernel fills the checksum in.
    advertisement[4] = 64;
    let mut packet = [0; 1500];
    loop {
        let (length, from) = socket.recv_from(&mut packet).await?;
        let SocketAddr::V6(from) = from else { continue };
        let here = from.scope_id() == index && !from.ip().is_unspecified();
        if here && length >= 8 && packet[0] == SOLICITATION {
            let to = SocketAddrV6::new(*from.ip(), 0, 0, index);
            // A lost answer is asked for again.
            let sent = socket.send_to(&advertisement, to).await;
            tracing::debug!(?sent, to = %from.ip(), "router advertisement");
        }
    }
}
