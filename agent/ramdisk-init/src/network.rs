//! Brings the network up: DHCP and router advertisements on the NIC that PXE used, on all if that one brings nothing.

use super::dhcp::{Lease, Machine, Output};
use super::ipv6;
use super::netlink::{self, Address};
use super::resolver::Resolver;
use super::servers::Servers;
use agent_protocol::inventory::Interface;
use mac::Mac;
use nix::sys::socket::{setsockopt, sockopt};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How long only the NIC that PXE used is tried.
const BOOT_NIC_TIME: Duration = Duration::from_secs(60);
/// NICs that appear late are looked for this often.
const LOOK: Duration = Duration::from_millis(250);
/// How often a machine without an address says so.
const REPORT: Duration = Duration::from_secs(30);
const SERVER_PORT: u16 = 67;
const CLIENT_PORT: u16 = 68;
/// Index of `lo`: the first interface of a network namespace.
const LOOPBACK: u32 = 1;

/// Bring the loopback interface up.
pub fn loopback_up() {
    if let Err(error) = netlink::link_up(LOOPBACK) {
        tracing::warn!(%error, "loopback stays down");
    }
}

/// Return when an interface has an address; until then, never. Leases are renewed permanently by
/// threads that go on after this has returned.
pub fn bring_up(boot_mac: Option<Mac>, servers: &Servers, interfaces: fn() -> Vec<Interface>) {
    let began = Instant::now();
    let (ready, leased) = mpsc::channel();
    let resolver = Arc::new(Resolver::new(&servers.dns));
    let by_ipv6 = servers.has_ipv6_controller;
    let mut started = BTreeSet::new();
    let mut reported = Instant::now();
    loop {
        let only = boot_mac.filter(|_| began.elapsed() < BOOT_NIC_TIME);
        for interface in chosen(interfaces(), only) {
            if started.insert(interface.name.clone()) {
                start(interface, ready.clone(), resolver.clone());
            }
        }
        let up = match leased.recv_timeout(LOOK) {
            Ok(name) => Some(name),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) if by_ipv6 => {
                advertised(&started)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        };
        if let Some(name) = up {
            tracing::info!(interface = name, seconds = began.elapsed().as_secs_f32(), "network is up");
            return;
        }
        if reported.elapsed() >= REPORT {
            reported = Instant::now();
            tracing::warn!(
                ?started,
                boot_mac = boot_mac.map(tracing::field::display),
                by_ipv6,
                "no address by DHCP or router advertisements yet"
            );
        }
    }
}

/// The first of these interfaces that has an address of IPv6.
fn advertised(started: &BTreeSet<String>) -> Option<String> {
    let table = ipv6::table();
    let has_address =
        |name: &&String| netlink::index_of(name).is_ok_and(|index| ipv6::has_address(&table, index));
    started.iter().find(has_address).cloned()
}

/// The interfaces to try. Pure.
fn chosen(all: Vec<Interface>, only: Option<Mac>) -> Vec<Interface> {
    let is = |interface: &Interface, mac: Mac| interface.mac_address.parse() == Ok(mac);
    all.into_iter().filter(|interface| only.is_none_or(|mac| is(interface, mac))).collect()
}

/// Start the DHCP client of an interface, which sends the interface's name when it has a lease.
pub fn start(interface: Interface, ready: Sender<String>, resolver: Arc<Resolver>) {
    thread::spawn(move || {
        let name = interface.name.clone();
        if let Err(error) = client(&interface, &ready, &resolver) {
            tracing::error!(interface = name, %error, "DHCP client ended");
        }
    });
}

/// Run one interface's DHCP client; never returns.
fn client(interface: &Interface, ready: &Sender<String>, resolver: &Resolver) -> io::Result<()> {
    let name = &interface.name;
    let index = netlink::index_of(name)?;
    let mac: Mac = interface.mac_address.parse().map_err(io::Error::other)?;
    netlink::link_up(index)?;
    tracing::info!(interface = name, mac = interface.mac_address, driver = ?interface.driver, "interface is up");
    let socket = socket(name)?;
    let began = Instant::now();
    let mut machine = Machine::new(mac.octets(), random_xid(), began.elapsed());
    let mut held: Option<Lease> = None;
    let mut wake = Duration::ZERO;
    let mut datagram = [0; 2048];
    loop {
        let now = began.elapsed();
        if now >= wake {
            let Output { send, wake: next } = machine.tick(now);
            wake = next;
            if let Some((bytes, to)) = send
                && let Err(error) = socket.send_to(&bytes, (to, SERVER_PORT))
            {
                tracing::debug!(interface = name, %error, "DHCP message not sent");
            }
        }
        let pause = wake.saturating_sub(began.elapsed()).max(Duration::from_millis(1));
        socket.set_read_timeout(Some(pause))?;
        match socket.recv_from(&mut datagram) {
            Ok((length, _)) => {
                let (lease, due) = machine.receive(began.elapsed(), &datagram[..length]);
                if due {
                    wake = Duration::ZERO;
                }
                if let Some(lease) = lease {
                    apply(name, index, held, lease);
                    if held.is_none_or(|old| old.dns != lease.dns) {
                        resolver.leased(index, lease.dns.map(|server| server.map(IpAddr::V4)));
                    }
                    held = Some(lease);
                    // After the first lease no receiver is left.
                    let _ = ready.send(name.clone());
                }
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            // ENETDOWN and the like: the link may come back.
            Err(error) => {
                tracing::debug!(interface = name, %error, "DHCP socket");
                thread::sleep(LOOK);
            }
        }
    }
}

/// Bound to the interface, so that it works without an address and receives only its own answers.
fn socket(name: &str) -> io::Result<UdpSocket> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, socket};
    use std::os::fd::AsRawFd;
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    setsockopt(&socket, sockopt::Broadcast, &true)?;
    setsockopt(&socket, sockopt::BindToDevice, &OsString::from(name))?;
    bind(
        socket.as_raw_fd(),
        &SockaddrIn::from(std::net::SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, CLIENT_PORT)),
    )?;
    Ok(UdpSocket::from(socket))
}

fn apply(name: &str, index: u32, held: Option<Lease>, lease: Lease) {
    let log = |what: &str, result: nix::Result<()>| {
        if let Err(error) = result {
            tracing::error!(interface = name, %error, "{what}");
        }
    };
    if held.is_some_and(|old| same(&old, &lease)) {
        tracing::debug!(interface = name, "lease renewed");
        return;
    }
    let Address { ip, prefix } = lease.address;
    tracing::info!(
        interface = name, address = %format_args!("{ip}/{prefix}"), router = ?lease.router, server = %lease.server,
        seconds = lease.seconds, "lease"
    );
    if let Some(old) = held.filter(|old| old.address != lease.address) {
        log("old address stays", netlink::remove_address(index, old.address));
    }
    if let Some(mtu) = lease.mtu {
        log("MTU not set", netlink::set_mtu(index, mtu));
    }
    log("address not set", netlink::add_address(index, lease.address));
    if let Some(router) = lease.router {
        log("route not set", netlink::add_default_route(index, router));
    }
}

fn same(old: &Lease, new: &Lease) -> bool {
    (old.address, old.router, old.mtu) == (new.address, new.router, new.mtu)
}

fn random_xid() -> u32 {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u32::from_ne_bytes(bytes),
        // Two machines with the same number still differ by their MAC, which answers carry.
        Err(_) => std::process::id(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nic_that_pxe_used_is_tried_alone_first() {
        let nic = |name: &str, mac: &str| Interface {
            name: name.into(),
            mac_address: mac.into(),
            ..Interface::default()
        };
        let all = || vec![nic("eth0", "52:54:00:00:00:01"), nic("eth1", "52:54:00:00:00:02")];
        let names = |only: Option<&str>| {
            let only = only.map(|mac| mac.parse().expect("a MAC"));
            chosen(all(), only).into_iter().map(|nic| nic.name).collect::<Vec<_>>()
        };
        assert_eq!(names(Some("52:54:00:00:00:02")), ["eth1"]);
        assert_eq!(names(None), ["eth0", "eth1"]);
    }
}
