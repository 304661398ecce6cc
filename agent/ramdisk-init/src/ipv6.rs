//! IPv6 of an interface: router advertisements, and whether its addresses can be used.

use agent_protocol::boot_medium::IpConfiguration;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr};

/// All addresses of IPv6 of this network namespace.
const TABLE: &str = "/proc/thread-self/net/if_inet6";
/// Flags of an address (linux/if_addr.h): another host has it; it is not known yet whether another host has it.
const DUPLICATE: u8 = 0x08;
const TENTATIVE: u8 = 0x40;
/// Scope of an address that is more than link-local.
const GLOBAL: u8 = 0;

/// Whether routers may give the interface addresses and routes. Without a word of the operator they may not: any host could be
/// one.
pub(super) fn accept_advertisements(name: &str, accept: bool) -> io::Result<()> {
    let value = if accept { "1" } else { "0" };
    match fs::write(format!("/proc/sys/net/ipv6/conf/{name}/accept_ra"), value) {
        // A kernel without IPv6, or an interface too small for it, hears none.
        Err(error) if error.kind() == ErrorKind::NotFound && !accept => Ok(()),
        result => result,
    }
}

/// The kernel's list of addresses; empty where it has no IPv6.
pub(super) fn table() -> String {
    fs::read_to_string(TABLE).unwrap_or_default()
}

/// An address in the list.
struct Entry {
    address: Ipv6Addr,
    index: u32,
    scope: u8,
    flags: u8,
}

/// Address, index, length of the prefix, scope and flags, in hexadecimal digits, and the name.
fn entry(line: &str) -> Option<Entry> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [address, index, _, scope, flags, ..] = words.as_slice() else { return None };
    Some(Entry {
        address: Ipv6Addr::from(u128::from_str_radix(address, 16).ok()?),
        index: u32::from_str_radix(index, 16).ok()?,
        scope: u8::from_str_radix(scope, 16).ok()?,
        // Only the low flags stand in it.
        flags: u8::from_str_radix(flags, 16).ok()?,
    })
}

fn entries_of(table: &str, index: u32) -> impl Iterator<Item = Entry> {
    table.lines().filter_map(entry).filter(move |one| one.index == index)
}

/// Whether the interface has an address that is more than link-local, and that no other host has. Pure.
pub(super) fn has_address(table: &str, index: u32) -> bool {
    entries_of(table, index).any(|one| one.scope == GLOBAL && one.flags & (TENTATIVE | DUPLICATE) == 0)
}

/// Which address of the interface cannot be used yet, and why. Pure.
pub(super) fn what_is_missing(table: &str, index: u32, carries: &IpConfiguration) -> Option<String> {
    let entries: Vec<Entry> = entries_of(table, index).collect();
    for address in &carries.addresses {
        let IpAddr::V6(wanted) = address.ip else { continue };
        match entries.iter().find(|one| one.address == wanted) {
            None => return Some(format!("{wanted} is not there")),
            Some(one) if one.flags & DUPLICATE != 0 => return Some(format!("another host has {wanted}")),
            Some(one) if one.flags & TENTATIVE != 0 => return Some(format!("{wanted} is being tried")),
            Some(_) => {}
        }
    }
    let waits = carries.slaac && carries.addresses.is_empty();
    (waits && !has_address(table, index)).then(|| "no address by router advertisements yet".to_owned())
}
