//! What a DHCP packet is answered: a function of the settings, the leases and the time.
//!
//! ```text
//!             server mode                        proxy mode (PXE and HTTP clients only)
//!   67   DISCOVER → OFFER, address + file        DISCOVER → OFFER, file, no address
//!        REQUEST  → ACK / NAK / silence          (the other server's)
//!        INFORM   → ACK, no address              —
//!   4011 —                                       REQUEST, INFORM → ACK, file
//! ```
//! RFC 2131, RFC 4578 (PXE options), UEFI 2.10 section 24.7 (HTTP boot), Intel PXE 2.1 (proxy DHCP).

use std::net::Ipv4Addr;
use std::time::Instant;

use dhcproto::v4::{
    Architecture, DhcpOption, HType, Message, MessageType, Opcode, OptionCode, UnknownOption,
};

use super::config::{DhcpConfig, Mode, Pool};
use super::leases::Leases;
use crate::{Mac, loaders};

/// The socket a packet came in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// 67, DHCP.
    Dhcp,
    /// 4011, the PXE boot server that a proxy offer sends clients to.
    Pxe,
}

/// Where an answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// 255.255.255.255:68, on our interface.
    Broadcast,
    /// This address, port 68.
    Client(Ipv4Addr),
    /// The relay at this address, port 67.
    Relay(Ipv4Addr),
    /// Whence the packet came.
    Sender,
}

/// A packet to send.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The packet.
    pub message: Message,
    /// Its destination.
    pub to: To,
}

/// The answer to `message`, if it is to get one. Reads and changes nothing but `leases`.
pub fn answer(
    config: &DhcpConfig,
    leases: &mut Leases,
    message: &Message,
    port: Port,
    now: Instant,
) -> Option<Reply> {
    // Ethernet only; hlen comes from the wire and dhcproto slices chaddr by it unchecked.
    if message.opcode() != Opcode::BootRequest || message.htype() != HType::Eth || message.hlen() != 6 {
        return None;
    }
    let mac = Mac::new(message.chaddr().try_into().ok()?);
    // A group address belongs to no client.
    if mac.octets()[0] & 1 == 1 {
        return None;
    }
    let client = Client { mac, boot: boot_file(config, message, mac), message };
    match (&config.mode, port) {
        (Mode::Proxy, _) => proxy(config, &client, port),
        // A relay would need the pool of the relay's network.
        (Mode::Server(pool), Port::Dhcp) if message.giaddr().is_unspecified() => {
            serve(config, pool, leases, &client, now)
        }
        (Mode::Server(_), _) => None,
    }
}

struct Client<'a> {
    mac: Mac,
    boot: Option<BootFile>,
    message: &'a Message,
}

/// What a client is to load, by what it says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BootFile {
    name: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ipxe,
    Pxe,
    Http,
}

fn class(message: &Message) -> &[u8] {
    match message.opts().get(OptionCode::ClassIdentifier) {
        Some(DhcpOption::ClassIdentifier(class)) => class,
        _ => &[],
    }
}

fn is_ipxe(message: &Message) -> bool {
    let user_class = match message.opts().get(OptionCode::UserClass) {
        // iPXE sends the bare word; RFC 3004 wants a length before it.
        Some(DhcpOption::UserClass(class)) => class.as_slice() == b"iPXE" || class.as_slice() == b"\x04iPXE",
        _ => false,
    };
    // Option 175 holds iPXE's own options.
    user_class || message.opts().contains(OptionCode::Unknown(175))
}

fn boot_file(config: &DhcpConfig, message: &Message, mac: Mac) -> Option<BootFile> {
    let architecture = match message.opts().get(OptionCode::ClientSystemArchitecture) {
        Some(DhcpOption::ClientSystemArchitecture(Architecture(code))) => Some(*code),
        _ => None,
    };
    let class = class(message);
    if is_ipxe(message) {
        let name = format!("{}/boot/ipxe?mac={mac}", config.boot_url);
        return Some(BootFile { name, kind: Kind::Ipxe });
    }
    if class.starts_with(b"HTTPClient") {
        let name = format!("{}/boot/{}", config.boot_url, loaders::UEFI);
        return (architecture == Some(16)).then_some(BootFile { name, kind: Kind::Http });
    }
    if !class.starts_with(b"PXEClient") {
        return None;
    }
    let name = match architecture {
        // ROMs older than RFC 4578 do not say; they are BIOS.
        None | Some(0) => loaders::BIOS,
        // RFC 4578 and its erratum 4625: x86-64 is 7 on the wire, 9 by the letter.
        Some(7 | 9) => loaders::UEFI,
        Some(_) => return None,
    };
    Some(BootFile { name: name.to_owned(), kind: Kind::Pxe })
}

fn requested(message: &Message) -> Option<Ipv4Addr> {
    match message.opts().get(OptionCode::RequestedIpAddress) {
        Some(DhcpOption::RequestedIpAddress(address)) => Some(*address),
        _ => None,
    }
}

fn server_identifier(message: &Message) -> Option<Ipv4Addr> {
    match message.opts().get(OptionCode::ServerIdentifier) {
        Some(DhcpOption::ServerIdentifier(address)) => Some(*address),
        _ => None,
    }
}

fn proxy(config: &DhcpConfig, client: &Client<'_>, port: Port) -> Option<Reply> {
    let kind = match (client.message.opts().msg_type()?, port) {
        (MessageType::Discover, Port::Dhcp) => MessageType::Offer,
        (MessageType::Request | MessageType::Inform, Port::Pxe) => MessageType::Ack,
        _ => return None,
    };
    let boot = client.boot.as_ref()?;
    let mut reply = reply_to(config, client, kind);
    boot_options(config, &mut reply, boot);
    let options = reply.opts_mut();
    let class: &[u8] = if boot.kind == Kind::Http { b"HTTPClient" } else { b"PXEClient" };
    options.insert(DhcpOption::ClassIdentifier(class.to_vec()));
    if boot.kind != Kind::Http {
        // PXE_DISCOVERY_CONTROL (6) with bit 3: load the named file, ask no boot server and show no menu.
        options.insert(DhcpOption::VendorExtensions(vec![6, 1, 8, 255]));
    }
    for code in [OptionCode::ClientMachineIdentifier, OptionCode::RelayAgentInformation] {
        if let Some(option) = client.message.opts().get(code) {
            options.insert(option.clone());
        }
    }
    let to = match (port, client.message.giaddr()) {
        (Port::Pxe, _) => To::Sender,
        (Port::Dhcp, relay) if !relay.is_unspecified() => To::Relay(relay),
        (Port::Dhcp, _) => To::Broadcast,
    };
    Some(Reply { message: reply, to })
}

fn serve(
    config: &DhcpConfig,
    pool: &Pool,
    leases: &mut Leases,
    client: &Client<'_>,
    now: Instant,
) -> Option<Reply> {
    let message = client.message;
    let mut reserved = vec![config.server];
    reserved.extend(pool.router);
    match message.opts().msg_type()? {
        MessageType::Discover => {
            let address = leases.offer(pool, &reserved, client.mac, requested(message), now);
            if address.is_none() {
                tracing::warn!(mac = %client.mac, "dhcp: no address is free");
            }
            Some(lease(config, pool, client, MessageType::Offer, Some(address?)))
        }
        MessageType::Request => {
            if server_identifier(message).is_some_and(|server| server != config.server) {
                // It took another server's offer. That may be a controller for which this one stands by.
                let taken = requested(message);
                if !taken.is_some_and(|address| leases.grant(pool, &reserved, client.mac, address, now)) {
                    leases.release(client.mac);
                }
                return None;
            }
            let renewed = Some(message.ciaddr()).filter(|address| !address.is_unspecified());
            let address = renewed.or_else(|| requested(message))?;
            if leases.grant(pool, &reserved, client.mac, address, now) {
                Some(lease(config, pool, client, MessageType::Ack, Some(address)))
            } else {
                Some(Reply { message: reply_to(config, client, MessageType::Nak), to: To::Broadcast })
            }
        }
        MessageType::Inform => Some(lease(config, pool, client, MessageType::Ack, None)),
        MessageType::Decline => {
            let address = requested(message)?;
            tracing::warn!(mac = %client.mac, %address, "dhcp: client says the address is in use");
            leases.decline(client.mac, address, now);
            None
        }
        MessageType::Release => {
            leases.release(client.mac);
            None
        }
        _ => None,
    }
}

/// An answer with all that goes with an address; without one for INFORM.
fn lease(
    config: &DhcpConfig,
    pool: &Pool,
    client: &Client<'_>,
    kind: MessageType,
    address: Option<Ipv4Addr>,
) -> Reply {
    let mut reply = reply_to(config, client, kind);
    if let Some(address) = address {
        reply.set_yiaddr(address);
        let seconds = u32::try_from(pool.lease.as_secs()).unwrap_or(u32::MAX);
        reply.opts_mut().insert(DhcpOption::AddressLeaseTime(seconds));
    }
    let options = reply.opts_mut();
    options.insert(DhcpOption::SubnetMask(pool.mask()));
    options.insert(DhcpOption::BroadcastAddr(pool.broadcast()));
    if let Some(router) = pool.router {
        options.insert(DhcpOption::Router(vec![router]));
    }
    if !pool.dns.is_empty() {
        options.insert(DhcpOption::DomainNameServer(pool.dns.clone()));
    }
    if let Some(boot) = &client.boot {
        boot_options(config, &mut reply, boot);
        match boot.kind {
            // Without the class the firmware takes the offer for one of plain DHCP.
            Kind::Http => drop(reply.opts_mut().insert(DhcpOption::ClassIdentifier(b"HTTPClient".to_vec()))),
            // ipxe.no-pxedhcp (176) = 1: there is no proxy DHCP to wait for.
            Kind::Ipxe => {
                let hint = UnknownOption::new(OptionCode::Unknown(175), vec![176, 1, 1]);
                reply.opts_mut().insert(DhcpOption::Unknown(hint));
            }
            Kind::Pxe => {}
        }
    }
    let ciaddr = client.message.ciaddr();
    let to = if ciaddr.is_unspecified() { To::Broadcast } else { To::Client(ciaddr) };
    Reply { message: reply, to }
}

fn boot_options(config: &DhcpConfig, reply: &mut Message, boot: &BootFile) {
    reply.set_siaddr(config.server);
    // DhcpConfig::check keeps URLs below the 128 bytes of the field.
    if boot.name.len() < 128 {
        reply.set_fname_str(&boot.name);
    }
    let options = reply.opts_mut();
    options.insert(DhcpOption::BootfileName(boot.name.clone().into_bytes()));
    if boot.kind == Kind::Pxe {
        options.insert(DhcpOption::TFTPServerName(config.server.to_string().into_bytes()));
    }
}

fn reply_to(config: &DhcpConfig, client: &Client<'_>, kind: MessageType) -> Message {
    let asked = client.message;
    let unset = Ipv4Addr::UNSPECIFIED;
    let mut reply =
        Message::new_with_id(asked.xid(), unset, unset, unset, asked.giaddr(), &client.mac.octets());
    reply.set_opcode(Opcode::BootReply).set_flags(asked.flags());
    if kind == MessageType::Ack {
        reply.set_ciaddr(asked.ciaddr());
    }
    let options = reply.opts_mut();
    options.insert(DhcpOption::MessageType(kind));
    options.insert(DhcpOption::ServerIdentifier(config.server));
    // RFC 6842: the client's identifier goes back to it.
    if let Some(identifier) = asked.opts().get(OptionCode::ClientIdentifier) {
        options.insert(identifier.clone());
    }
    reply
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
