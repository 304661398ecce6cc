//! The network that a boot medium brings: cards, bonds and VLANs with addresses of their own.

mod devices;

use super::resolver::{NameServers, Resolver};
use super::{ipv6, network};
use agent_protocol::boot_medium::{StaticInterface, StaticNetwork};
use agent_protocol::inventory::Interface;
use devices::Device;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// NICs that appear late are looked for this often, and addresses that are being tried.
const LOOK: Duration = Duration::from_millis(100);
/// How long all interfaces are waited for, once one is ready, and all cards of a bond.
const OTHERS: Duration = Duration::from_secs(30);
/// How often a machine without the interfaces says so.
const REPORT: Duration = Duration::from_secs(30);
/// Under which the name servers of the whole network are kept: no interface has this index.
const ALL_INTERFACES: u32 = 0;

/// Modules that the network needs, by the names under which the kernel would ask modprobe for them.
pub fn modaliases(network: &StaticNetwork) -> impl Iterator<Item = &'static str> {
    let bond = network.interfaces.iter().any(|interface| interface.bond.is_some());
    let vlan = network.interfaces.iter().any(|interface| !interface.vlans.is_empty());
    [bond.then_some("rtnl-link-bond"), vlan.then_some("rtnl-link-vlan")].into_iter().flatten()
}

/// How far an interface is.
enum State<'a> {
    /// A card is not there yet, or something failed, which is tried again.
    Wanted(&'a StaticInterface),
    /// Made; its addresses are being tried.
    Made(Vec<Device<'a>>),
    /// It can be used.
    Ready,
}

/// Make the interfaces of `network` as their cards appear. Returns when all can be used, or, some time after the machine
/// began to look for them, at least one; until then, never. Leases are renewed by threads that go on after this has returned.
pub fn bring_up(network: &StaticNetwork, resolver: Resolver, interfaces: fn() -> Vec<Interface>) {
    let (began, resolver) = (Instant::now(), Arc::new(resolver));
    resolver.leased(ALL_INTERFACES, name_servers(network));
    let (lease, leases) = mpsc::channel();
    let mut leased = BTreeSet::new();
    let mut states: Vec<State> = network.interfaces.iter().map(State::Wanted).collect();
    let mut report = Report::default();
    loop {
        leased.extend(leases.try_iter());
        let present = interfaces();
        let is_late = began.elapsed() >= OTHERS;
        let mut problems = Vec::new();
        for state in &mut states {
            let next = match state {
                State::Wanted(wanted) => match devices::make(&present, wanted, is_late) {
                    Ok(devices) => {
                        ask_dhcp(&devices, &lease, &resolver);
                        Some(State::Made(devices))
                    }
                    Err(problem) => {
                        problems.push(problem);
                        None
                    }
                },
                State::Made(devices) => match what_is_missing(devices, &leased) {
                    None => {
                        tracing::info!(
                            ?devices,
                            seconds = began.elapsed().as_secs_f32(),
                            "interface is ready"
                        );
                        Some(State::Ready)
                    }
                    Some(problem) => {
                        problems.push(problem);
                        None
                    }
                },
                State::Ready => None,
            };
            if let Some(next) = next {
                *state = next;
            }
        }
        let ready = states.iter().filter(|state| matches!(state, State::Ready)).count();
        if ready == states.len() || (ready > 0 && is_late) {
            if !problems.is_empty() {
                tracing::warn!(?problems, "the boot goes on without some network interfaces");
            }
            return;
        }
        report.say(&problems, &present);
        thread::sleep(LOOK);
    }
}

/// What keeps the machine waiting, once as it is and then from time to time.
#[derive(Default)]
struct Report {
    said: Option<(Vec<String>, Instant)>,
}

impl Report {
    fn say(&mut self, problems: &[String], present: &[Interface]) {
        let known = |(said, at): &(Vec<String>, Instant)| said == problems && at.elapsed() < REPORT;
        if problems.is_empty() || self.said.as_ref().is_some_and(known) {
            return;
        }
        let present: Vec<_> = present.iter().map(|interface| &interface.mac_address).collect();
        tracing::warn!(?problems, ?present, "the network is not ready");
        self.said = Some((problems.to_vec(), Instant::now()));
    }
}

fn ask_dhcp(devices: &[Device], lease: &Sender<String>, resolver: &Arc<Resolver>) {
    for device in devices.iter().filter(|device| device.ip.dhcp) {
        let interface = Interface {
            name: device.name.clone(),
            mac_address: device.mac.to_owned(),
            ..Interface::default()
        };
        network::start(interface, lease.clone(), resolver.clone());
    }
}

/// Why the devices of an interface cannot be used yet. What servers give is waited for where there is nothing else.
fn what_is_missing(devices: &[Device], leased: &BTreeSet<String>) -> Option<String> {
    let table = ipv6::table();
    devices.iter().find_map(|device| {
        if let Some(problem) = ipv6::what_is_missing(&table, device.index, device.ip) {
            return Some(format!("{}: {problem}", device.name));
        }
        let waits = device.ip.dhcp && device.ip.addresses.is_empty();
        let is_missing = waits && !leased.contains(&device.name);
        is_missing.then(|| format!("{}: no address by DHCP yet", device.name))
    })
}

fn name_servers(network: &StaticNetwork) -> NameServers {
    std::array::from_fn(|at| network.dns.get(at).copied())
}

#[cfg(test)]
mod tests;
