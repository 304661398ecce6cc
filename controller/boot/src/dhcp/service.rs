//! The sockets of the DHCP service, and the loop over them.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Instant;

use dhcproto::v4::Message;
use dhcproto::{Decodable, Decoder, Encodable, Encoder};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, setsockopt, socket, sockopt};
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

use super::answer::{Port, To, answer};
use super::config::{DhcpConfig, Mode};
use super::leases::SharedLeases;
use crate::BootError;

const SERVER: u16 = 67;
const CLIENT: u16 = 68;
const PXE: u16 = 4011;
/// A packet shorter than this is dropped by old BOOTP clients (RFC 1542, section 2.1).
const SHORTEST: usize = 300;
/// RFC 1497: the options begin with this, after the 236 bytes of BOOTP.
const MAGIC: [u8; 4] = [99, 130, 83, 99];
const OPTIONS: usize = 240;
const PAD: u8 = 0;
const END: u8 = 255;
/// Options that we read or send back: requested address, message type, server identifier, vendor class,
/// client identifier, user class, relay agent, architecture, machine identifier, iPXE's own.
pub(super) const READ: [u8; 10] = [50, 53, 54, 60, 61, 77, 82, 93, 97, 175];

/// The service with its sockets open.
pub struct Dhcp {
    config: DhcpConfig,
    dhcp: UdpSocket,
    /// Proxy mode only.
    pxe: Option<UdpSocket>,
    leases: SharedLeases,
    is_active: ActiveCheck,
}

/// Whether this server answers now, or only listens, and learns who has which address, because another one answers.
pub type ActiveCheck = Arc<dyn Fn() -> bool + Send + Sync>;

impl Dhcp {
    /// Check the settings and open the sockets, on the one interface only.
    ///
    /// # Errors
    /// A setting that makes no sense; no such interface; no privilege (`CAP_NET_BIND_SERVICE`,
    /// `CAP_NET_RAW`); another DHCP server has the port.
    pub async fn bind(config: DhcpConfig) -> Result<Self, BootError> {
        config.check()?;
        let open = |port| {
            open(&config.interface, port).map_err(|source| BootError::Io {
                service: "dhcp",
                action: format!("listen on port {port} of {}", config.interface),
                source,
            })
        };
        let dhcp = open(SERVER)?;
        let pxe = if config.mode == Mode::Proxy { Some(open(PXE)?) } else { None };
        Ok(Self { config, dhcp, pxe, leases: SharedLeases::default(), is_active: Arc::new(|| true) })
    }

    /// The service with its leases kept in `leases`.
    #[must_use]
    pub fn sharing(self, leases: SharedLeases) -> Self {
        Self { leases, ..self }
    }

    /// The service that stands by for another one: it answers while `is_active` says so.
    #[must_use]
    pub fn standing_by(self, is_active: ActiveCheck) -> Self {
        Self { is_active, ..self }
    }

    /// Answer until `shutdown`.
    ///
    /// # Errors
    /// A socket failed for good (the interface is gone).
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), BootError> {
        tracing::info!(interface = self.config.interface, server = %self.config.server, "dhcp: listening");
        let (mut first, mut second) = ([0; 2048], [0; 2048]);
        loop {
            let (port, received) = tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                received = self.dhcp.recv_from(&mut first) => (Port::Dhcp, received),
                received = receive(self.pxe.as_ref(), &mut second) => (Port::Pxe, received),
            };
            let (length, from) = received.map_err(|source| BootError::Io {
                service: "dhcp",
                action: format!("receive on {}", self.config.interface),
                source,
            })?;
            let packet = if port == Port::Dhcp { &first[..length] } else { &second[..length] };
            self.one(packet, port, from).await;
        }
    }

    async fn one(&self, packet: &[u8], port: Port, from: SocketAddr) {
        let Some(message) = decode(packet) else {
            tracing::debug!(%from, bytes = packet.len(), "dhcp: not a DHCP packet");
            return;
        };
        let reply = answer(&self.config, &mut self.leases.lock(), &message, port, Instant::now());
        let Some(reply) = reply.filter(|_| (self.is_active)()) else { return };
        let to = match reply.to {
            To::Broadcast => SocketAddr::from((Ipv4Addr::BROADCAST, CLIENT)),
            To::Client(address) => SocketAddr::from((address, CLIENT)),
            To::Relay(address) => SocketAddr::from((address, SERVER)),
            To::Sender => from,
        };
        let socket = match (port, &self.pxe) {
            (Port::Pxe, Some(pxe)) => pxe,
            _ => &self.dhcp,
        };
        let kind = reply.message.opts().msg_type();
        let sent = match encode(&reply.message) {
            Ok(bytes) => socket.send_to(&bytes, to).await.map(drop),
            Err(error) => Err(io::Error::other(error)),
        };
        let address = reply.message.yiaddr();
        let file = reply.message.fname().map(String::from_utf8_lossy);
        match sent {
            Ok(()) => tracing::debug!(?kind, %address, %to, file = file.as_deref(), "dhcp: answered"),
            Err(error) => tracing::warn!(?kind, %to, %error, "dhcp: answer not sent"),
        }
    }
}

/// [`Dhcp::bind`] and [`Dhcp::run`].
///
/// # Errors
/// As those.
pub async fn serve(config: DhcpConfig, shutdown: CancellationToken) -> Result<(), BootError> {
    Dhcp::bind(config).await?.run(shutdown).await
}

async fn receive(socket: Option<&UdpSocket>, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    match socket {
        Some(socket) => socket.recv_from(buffer).await,
        None => std::future::pending().await,
    }
}

/// A packet, reduced to the options that [`answer`] reads.
///
/// dhcproto 0.15 panics on options of the wrong length (152 of length 0, found by the property test in
/// `answer_tests.rs`), so it is shown only those that we need and whose decoding is known to be safe.
pub(super) fn decode(packet: &[u8]) -> Option<Message> {
    let header = packet.get(..OPTIONS)?;
    if header[OPTIONS - MAGIC.len()..] != MAGIC {
        return None;
    }
    let mut safe = header.to_vec();
    let mut rest = &packet[OPTIONS..];
    while let [code, tail @ ..] = rest {
        match (*code, tail) {
            (PAD, _) => rest = tail,
            (END, _) | (_, []) => break,
            (code, [length, tail @ ..]) => {
                let Some((data, next)) = tail.split_at_checked(usize::from(*length)) else { break };
                if READ.contains(&code) {
                    safe.extend([code, *length]);
                    safe.extend_from_slice(data);
                }
                rest = next;
            }
        }
    }
    safe.push(END);
    Message::decode(&mut Decoder::new(&safe)).ok()
}

pub(super) fn encode(message: &Message) -> Result<Vec<u8>, dhcproto::error::EncodeError> {
    let mut bytes = Vec::with_capacity(SHORTEST);
    message.encode(&mut Encoder::new(&mut bytes))?;
    if bytes.len() < SHORTEST {
        bytes.resize(SHORTEST, 0);
    }
    Ok(bytes)
}

/// A UDP socket that hears and speaks on one interface only, so that two networks do not mix and a
/// broadcast goes out of the right one.
fn open(interface: &str, port: u16) -> io::Result<UdpSocket> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Inet, SockType::Datagram, flags, None)?;
    setsockopt(&fd, sockopt::BindToDevice, &OsString::from(interface))?;
    setsockopt(&fd, sockopt::ReuseAddr, &true)?;
    setsockopt(&fd, sockopt::Broadcast, &true)?;
    let address = SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port));
    bind(std::os::fd::AsRawFd::as_raw_fd(&fd), &address)?;
    UdpSocket::from_std(std::net::UdpSocket::from(fd))
}
