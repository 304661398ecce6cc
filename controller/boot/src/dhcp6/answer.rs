//! What a DHCPv6 packet is answered: a function of the settings and the packet.

use super::config::Dhcp6Config;
use super::message::{Bytes, Message, Options};
use crate::loaders;
use sha2::{Digest, Sha256};
use std::net::Ipv6Addr;

const SOLICIT: u8 = 1;
const ADVERTISE: u8 = 2;
const REQUEST: u8 = 3;
const CONFIRM: u8 = 4;
const RENEW: u8 = 5;
const REBIND: u8 = 6;
const REPLY: u8 = 7;
const RELEASE: u8 = 8;
const DECLINE: u8 = 9;
const INFORMATION_REQUEST: u8 = 11;

const CLIENT_ID: u16 = 1;
const SERVER_ID: u16 = 2;
const IA_NA: u16 = 3;
const IA_ADDRESS: u16 = 5;
const PREFERENCE: u16 = 7;
const STATUS: u16 = 13;
const USER_CLASS: u16 = 15;
const DNS: u16 = 23;
const BOOT_FILE_URL: u16 = 59;
const ARCHITECTURE: u16 = 61;

/// Status codes (RFC 8415, section 21.13).
const SUCCESS: [u8; 2] = [0, 0];
const NOT_ON_LINK: [u8; 2] = [0, 4];

/// Longest name of a client, with its type (RFC 8415, section 11.1).
const DUID_MOST: usize = 130;
/// Most addresses that a client gets in one answer.
const ADDRESSES: usize = 4;
/// Seconds for which an address holds; it is renewed after half of them.
const LIFETIME: u32 = 86_400;
/// The client waits for no other server.
const AT_ONCE: u8 = 255;
/// Architectures of x86-64 with UEFI: 7 on the wire, 9 by the letter (RFC 4578 and its erratum 4625).
const UEFI_X64: [[u8; 2]; 2] = [[0, 7], [0, 9]];
/// What our addresses have behind their prefix, so that they are none that people or other programs choose.
const OURS: u64 = 0xa22e << 48;

/// A packet to send, and what is in it for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The packet.
    pub packet: Vec<u8>,
    /// The addresses of the client.
    pub addresses: Vec<Ipv6Addr>,
    /// What it is to load.
    pub boot_file: Option<String>,
    /// What another host has, says the client.
    pub declined: Vec<Ipv6Addr>,
}

/// The answer to `packet`, if it is to get one.
pub fn answer(config: &Dhcp6Config, packet: &[u8]) -> Option<Answer> {
    let message = Message::parse(packet)?;
    let own = own_id(config.server);
    let kind = kind_of_answer(&message, &own)?;
    let client = message.options.first(CLIENT_ID).filter(|id| (3..=DUID_MOST).contains(&id.len()));
    let mut reply = Bytes::message(kind, message.transaction);
    if let Some(client) = client {
        reply = reply.option(CLIENT_ID, client);
    }
    reply = reply.option(SERVER_ID, &own);
    let mut answer =
        Answer { packet: Vec::new(), addresses: Vec::new(), boot_file: None, declined: Vec::new() };
    match (message.kind, client) {
        (INFORMATION_REQUEST, _) => {}
        (_, None) => return None,
        (CONFIRM, Some(_)) => reply = reply.option(STATUS, &status_of_link(config, &message)?),
        (RELEASE | DECLINE, Some(_)) => {
            if message.kind == DECLINE {
                answer.declined = named_addresses(&message);
            }
            reply = reply.option(STATUS, &SUCCESS);
        }
        (_, Some(client)) => {
            for association in message.options.all(IA_NA).take(ADDRESSES) {
                let id = association.first_chunk()?;
                let address = address(config.server, client, *id);
                reply = reply.option(IA_NA, &lease(*id, address));
                answer.addresses.push(address);
            }
            if answer.addresses.is_empty() {
                return None;
            }
        }
    }
    if kind == ADVERTISE {
        reply = reply.option(PREFERENCE, &[AT_ONCE]);
    }
    if !config.dns.is_empty() {
        let servers: Vec<u8> = config.dns.iter().flat_map(Ipv6Addr::octets).collect();
        reply = reply.option(DNS, &servers);
    }
    answer.boot_file = boot_file(config, &message.options);
    if let Some(url) = &answer.boot_file {
        reply = reply.option(BOOT_FILE_URL, url.as_bytes());
    }
    answer.packet = reply.finish();
    Some(answer)
}

/// `None` for what is not for us (RFC 8415, section 16).
fn kind_of_answer(message: &Message, own: &[u8]) -> Option<u8> {
    let named = message.options.first(SERVER_ID);
    let is_ours = named == Some(own);
    match message.kind {
        SOLICIT if named.is_none() => Some(ADVERTISE),
        CONFIRM | REBIND if named.is_none() => Some(REPLY),
        REQUEST | RENEW | RELEASE | DECLINE if is_ours => Some(REPLY),
        INFORMATION_REQUEST if named.is_none() || is_ours => Some(REPLY),
        _ => None,
    }
}

/// A UUID as RFC 8415, section 11.5 has them, which is our address: no other server of the network has it.
fn own_id(server: Ipv6Addr) -> Vec<u8> {
    [&[0, 4][..], &server.octets()].concat()
}

fn prefix(of: Ipv6Addr) -> u128 {
    of.to_bits() & !u128::from(u64::MAX)
}

/// The address of a client (`duid`) for one of its associations.
fn address(server: Ipv6Addr, duid: &[u8], association: [u8; 4]) -> Ipv6Addr {
    let digest: [u8; 32] = Sha256::new().chain_update(duid).chain_update(association).finalize().into();
    let [a, b, c, d, e, f, ..] = digest;
    let interface = OURS | u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    Ipv6Addr::from_bits(prefix(server) | u128::from(interface))
}

/// The value of IA_NA with one address.
fn lease(association: [u8; 4], address: Ipv6Addr) -> Vec<u8> {
    let lifetime = LIFETIME.to_be_bytes();
    // RFC 8415, section 21.4: half, and four fifths.
    let (renew, rebind) = ((LIFETIME / 2).to_be_bytes(), (LIFETIME / 5 * 4).to_be_bytes());
    let address = [&address.octets()[..], &lifetime, &lifetime].concat();
    Bytes::fields(&[association, renew, rebind].concat()).option(IA_ADDRESS, &address).finish()
}

/// The addresses that a client names.
fn named_addresses(message: &Message) -> Vec<Ipv6Addr> {
    let inside = |association: &[u8]| {
        let options = association.get(12..).and_then(Options::parse);
        let addresses =
            options.iter().flat_map(|options| options.all(IA_ADDRESS)).map(<[u8]>::first_chunk::<16>);
        addresses.flatten().map(|octets| Ipv6Addr::from(*octets)).collect::<Vec<_>>()
    };
    message.options.all(IA_NA).take(ADDRESSES).flat_map(inside).collect()
}

/// Whether the addresses that a client names are of this network; `None` where it names none (RFC 8415, section 18.3.3).
fn status_of_link(config: &Dhcp6Config, message: &Message) -> Option<[u8; 2]> {
    let named = named_addresses(message);
    let is_here = named.iter().all(|address| prefix(*address) == prefix(config.server));
    (!named.is_empty()).then_some(if is_here { SUCCESS } else { NOT_ON_LINK })
}

/// What a client is to load, by what it says of itself. iPXE puts the address of its NIC into the URL.
fn boot_file(config: &Dhcp6Config, options: &Options) -> Option<String> {
    if options.first(USER_CLASS).is_some_and(is_ipxe) {
        return Some(format!("{}/boot/ipxe?mac=${{netX/mac}}", config.boot_url));
    }
    let (architectures, _) = options.first(ARCHITECTURE)?.as_chunks::<2>();
    let is_uefi = architectures.iter().any(|one| UEFI_X64.contains(one));
    is_uefi.then(|| format!("tftp://[{}]/{}", config.server, loaders::UEFI))
}

/// Whether one of the classes, each behind its length, is iPXE's.
fn is_ipxe(mut classes: &[u8]) -> bool {
    while let Some((length, rest)) = classes.split_first_chunk() {
        let Some((class, rest)) = rest.split_at_checked(u16::from_be_bytes(*length).into()) else {
            return false;
        };
        if class == b"iPXE" {
            return true;
        }
        classes = rest;
    }
    false
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
