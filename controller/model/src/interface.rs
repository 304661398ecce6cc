//! The network interfaces of an inventory, and how they change the ports of the node.

use crate::{Resource, Timestamp};
pub use mac::Mac;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::IpAddr;
use uuid::Uuid;

/// Most interfaces of one inventory that become ports.
const MAX: usize = 256;

/// Which interfaces become ports: Ironic's `[inspector]add_ports`, with its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddPorts {
    /// The one that the node booted from; all if the inventory does not report which that is. Of an agent's report only those
    /// that something else names ([`InterfaceEvidence`]).
    Pxe,
    /// Those with an IP address.
    Active,
    /// All with a MAC address.
    All,
    /// None.
    Disabled,
}

/// How the interfaces of an inventory change the ports of a node.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PortChanges {
    /// The existing ports, in their order, with `pxe_enabled` as the inventory reports it, if it does.
    pub known: Vec<Resource>,
    /// Ports to be created. Another node may have one of these addresses.
    pub new: Vec<Resource>,
    /// Interfaces that are no ports and that nothing but the report names: an operator decides about them.
    pub waiting: Vec<Mac>,
}

/// What names the node's interfaces besides a report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum InterfaceEvidence<'a> {
    /// Not needed: the inventory is the BMC's.
    NotNeeded,
    /// These fetched the boot script in the boot that sent the report, and the BMC reports those.
    These {
        /// MAC addresses of fetches.
        fetched: &'a [Mac],
        /// MAC addresses in the inventory of the BMC.
        bmc: &'a [Mac],
    },
}

impl InterfaceEvidence<'_> {
    /// Whether an interface that may be the one that the node booted from is.
    fn confirm(&self, address: Mac, boots: bool) -> bool {
        match self {
            Self::NotNeeded => boots,
            Self::These { fetched, bmc } => fetched.contains(&address) || (boots && bmc.contains(&address)),
        }
    }
}

/// The MAC addresses of the interfaces of an inventory.
pub fn addresses(inventory: &Value) -> Vec<Mac> {
    interfaces(inventory).map(|interface| interface.address).collect()
}

/// One interface.
struct Interface {
    /// MAC address.
    address: Mac,
    /// It had an IP address.
    active: bool,
}

/// What an `inventory`, found by the run with this id, makes of the `known` ports of a node, as Ironic's hooks
/// `validate-interfaces` and `ports` have it, but for what they do without knowing the interface that was booted from:
/// they disable PXE on every port then; here a port is left as it is.
pub fn port_changes(
    inventory: &Value,
    known: &[Resource],
    (add, evidence): (AddPorts, InterfaceEvidence),
    (node, run): (Uuid, Uuid),
    now: Timestamp,
) -> PortChanges {
    let pxe = pxe_address(inventory);
    let booted_from = |port: Resource| match pxe {
        Some(pxe) => {
            let boots = port.address() == pxe.to_string();
            port.with_pxe(boots)
        }
        None => port,
    };
    let known_now = known.iter().cloned().map(booted_from).collect();
    let mut result = PortChanges { known: known_now, ..PortChanges::default() };
    for Interface { address, active } in interfaces(inventory) {
        let boots = pxe.is_none_or(|pxe| pxe == address);
        let wanted = match add {
            AddPorts::Pxe => evidence.confirm(address, boots),
            AddPorts::Active => active,
            AddPorts::All => true,
            AddPorts::Disabled => false,
        };
        let there = known.iter().chain(&result.new).any(|port| port.address() == address.to_string());
        let is_checked = add == AddPorts::Pxe && evidence != InterfaceEvidence::NotNeeded;
        if is_checked && !wanted && !there && !result.waiting.contains(&address) {
            result.waiting.push(address);
        }
        if wanted && !there {
            // The same interface in the same inspection is the same port, however often it is decided about.
            let uuid = Uuid::new_v5(&run, address.to_string().as_bytes());
            result.new.push(Resource::port(uuid, node, address, now).with_pxe(boots));
        }
    }
    result
}

/// The interfaces with a name and a MAC address that are not local.
fn interfaces(inventory: &Value) -> impl Iterator<Item = Interface> {
    let listed = inventory.get("interfaces").and_then(Value::as_array).into_iter().flatten().take(MAX);
    listed.filter_map(|interface| {
        let text = |key: &str| interface.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let name = text("name")?;
        let address = text("mac_address")?.parse().ok().filter(is_of_one)?;
        // An IPv6 address may come with its zone.
        let ip = text("ipv4_address").or_else(|| text("ipv6_address")?.split('%').next());
        let local = ip.and_then(|ip| ip.parse::<IpAddr>().ok()).is_some_and(|ip| ip.is_loopback());
        (name != "lo" && !local).then_some(Interface { address, active: ip.is_some() })
    })
}

/// Whether a MAC address is that of one interface: not that of a group or of all, and not nothing.
fn is_of_one(address: &Mac) -> bool {
    let octets = address.octets();
    octets != [0; 6] && octets[0] & 1 == 0
}

/// The MAC address of the interface that the node booted from; PXELINUX puts the hardware type before it.
fn pxe_address(inventory: &Value) -> Option<Mac> {
    let interface = inventory.pointer("/boot/pxe_interface")?.as_str()?;
    interface.parse().or_else(|_| interface.split_once('-').unwrap_or_default().1.parse()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: Timestamp = Timestamp(7);
    const NODE: Uuid = Uuid::from_u128(1);
    const RUN: Uuid = Uuid::from_u128(2);
    const FIRST: &str = "52:54:00:00:00:01";
    const SECOND: &str = "52:54:00:00:00:02";
    const THIRD: &str = "52:54:00:00:00:03";

    fn inventory(pxe: Option<&str>) -> Value {
        json!({
            "interfaces": [
                {"name": "lo", "mac_address": "52:54:00:00:00:0a", "ipv4_address": "127.0.0.1"},
                {"name": "dummy0", "mac_address": "52:54:00:00:00:0b", "ipv6_address": "::1"},
                {"name": "eno1", "mac_address": "52-54-00-00-00-01", "ipv4_address": "192.0.2.1"},
                {"name": "eno2", "mac_address": SECOND, "ipv4_address": null, "ipv6_address": "fe80::1%eno2"},
                {"name": "eno3", "mac_address": THIRD},
                {"name": "again", "mac_address": THIRD.to_uppercase()},
                {"name": "ib0", "mac_address": "a0:00:02:20:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:00:00:01"},
                {"name": "none", "mac_address": null},
                {"name": "zero", "mac_address": "00:00:00:00:00:00"},
                {"name": "all", "mac_address": "ff:ff:ff:ff:ff:ff"},
                {"name": "group", "mac_address": "33:33:00:00:00:01"},
                {"mac_address": "52:54:00:00:00:0c"},
                "eno4",
            ],
            "boot": {"current_boot_mode": "uefi", "pxe_interface": pxe},
        })
    }

    fn new(inventory: &Value, add: AddPorts) -> Vec<(String, bool)> {
        let found = port_changes(inventory, &[], (add, InterfaceEvidence::NotNeeded), (NODE, RUN), NOW);
        found.new.iter().map(|port| (port.address().to_owned(), port.pxe_enabled())).collect()
    }

    fn port(address: &str, pxe_enabled: bool) -> Resource {
        let uuid = Uuid::new_v5(&NODE, address.as_bytes());
        Resource::port(uuid, NODE, address.parse().unwrap(), NOW).with_pxe(pxe_enabled)
    }

    #[test]
    fn the_setting_says_which_interfaces_become_ports() {
        let (all, first) = ([FIRST, SECOND, THIRD], |address: &str| (address.to_owned(), address == FIRST));
        let reported = inventory(Some(FIRST));
        assert_eq!(new(&reported, AddPorts::Pxe), [first(FIRST)]);
        assert_eq!(new(&reported, AddPorts::Active), [FIRST, SECOND].map(first));
        assert_eq!(new(&reported, AddPorts::All), all.map(first));
        assert_eq!(new(&reported, AddPorts::Disabled), []);
        assert_eq!(new(&inventory(Some("01-52-54-00-00-00-01")), AddPorts::Pxe), [first(FIRST)]);
    }

    #[test]
    fn without_the_interface_that_was_booted_from_any_may_be_it() {
        for pxe in [None, Some(""), Some("eno1")] {
            let reported = inventory(pxe);
            assert_eq!(
                new(&reported, AddPorts::Pxe),
                [FIRST, SECOND, THIRD].map(|mac| (mac.to_owned(), true))
            );
            let known = [port(FIRST, true), port(SECOND, false)];
            let add = (AddPorts::Pxe, InterfaceEvidence::NotNeeded);
            assert_eq!(port_changes(&reported, &known, add, (NODE, RUN), NOW).known, known);
        }
        for nothing in
            [json!({}), json!({"interfaces": {}}), json!([]), json!({"interfaces": [[]], "boot": 1})]
        {
            assert_eq!(
                port_changes(&nothing, &[], (AddPorts::All, InterfaceEvidence::NotNeeded), (NODE, RUN), NOW),
                PortChanges::default(),
                "{nothing}"
            );
        }
    }

    #[test]
    fn what_only_the_agent_reports_waits_for_an_operator() {
        let mac = |text: &str| -> Mac { text.parse().unwrap() };
        let [first, second, third] = [FIRST, SECOND, THIRD].map(mac);
        let of = |reported: &Value, add, fetched: &[Mac], bmc: &[Mac]| {
            let evidence = InterfaceEvidence::These { fetched, bmc };
            let found = port_changes(reported, &[port(SECOND, true)], (add, evidence), (NODE, RUN), NOW);
            let new: Vec<String> = found.new.iter().map(|port| port.address().to_owned()).collect();
            (new, found.waiting)
        };
        let reported = inventory(Some(FIRST));
        let unnamed = inventory(None);
        let pxe = AddPorts::Pxe;
        assert_eq!(of(&reported, pxe, &[], &[]), (vec![], vec![first, third]), "the report names it");
        assert_eq!(of(&unnamed, pxe, &[], &[]), (vec![], vec![first, third]));
        assert_eq!(of(&reported, pxe, &[first], &[]), (vec![FIRST.to_owned()], vec![third]));
        // Another than the report says: what asked for the script did boot.
        assert_eq!(of(&reported, pxe, &[third], &[]), (vec![THIRD.to_owned()], vec![first]));
        assert_eq!(of(&reported, pxe, &[], &[first, second, third]), (vec![FIRST.to_owned()], vec![third]));
        assert_eq!(
            of(&unnamed, pxe, &[], &[first, second, third]),
            (vec![FIRST.to_owned(), THIRD.to_owned()], vec![])
        );
        // What an operator chose holds.
        assert_eq!(of(&reported, AddPorts::All, &[], &[]).0, [FIRST, THIRD]);
        assert_eq!(of(&reported, AddPorts::Active, &[], &[]), (vec![FIRST.to_owned()], vec![]));
        assert_eq!(of(&reported, AddPorts::Disabled, &[first], &[first]), (vec![], vec![]));
    }

    #[test]
    fn ports_that_are_there_stay_and_only_say_whether_the_node_boots_by_them() {
        let known = [port(SECOND, true), port(FIRST, false)];
        let all = (AddPorts::All, InterfaceEvidence::NotNeeded);
        let reported = port_changes(&inventory(Some(FIRST)), &known, all, (NODE, RUN), NOW);
        let known_now: Vec<_> =
            reported.known.iter().map(|port| (port.address(), port.pxe_enabled())).collect();
        assert_eq!(known_now, [(SECOND, false), (FIRST, true)]);
        let [third] = reported.new.as_slice() else { panic!("{:?}", reported.new) };
        assert_eq!((third.address(), third.node, third.created_at), (THIRD, Some(NODE), NOW));
        let again = port_changes(&inventory(Some(FIRST)), &known, all, (NODE, RUN), Timestamp(8));
        assert_eq!(again.new[0].uuid, third.uuid, "decided about twice");
        let later = port_changes(&inventory(Some(FIRST)), &known, all, (NODE, NODE), NOW);
        assert_ne!(later.new[0].uuid, third.uuid, "another inspection, after it was deleted");
    }
}
