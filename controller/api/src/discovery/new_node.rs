//! The node that the report of an unknown machine makes: pure.

use super::DiscoverySettings;
use inspection_rules::{Applied, Findings, apply};
use model::discovery::DiscoveredMachine;
use model::history::{EventKind, Severity};
use model::interface::{self, InterfaceEvidence};
use model::{Event, Inventory, Node, Resource, Timestamp, inventory, request, storage};
use std::net::IpAddr;
use store::NewNode;
use uuid::Uuid;

/// What a machine reported.
pub struct Reported {
    /// The inventory.
    pub inventory: Inventory,
    /// Where its BMC is, if it says so.
    pub bmc: Option<IpAddr>,
}

/// What is made of it.
pub struct DiscoveredNode {
    /// The node, with its ports.
    pub new: NewNode,
    /// What its history begins with.
    pub events: Vec<Event>,
}

impl DiscoveredNode {
    /// The node of this machine, as an inspection would leave it: with properties, ports and what the inspection rules make of it.
    /// A rule that fails, or chooses a driver that is none of `drivers`, changes nothing; the history names it.
    pub fn of(
        machine: &DiscoveredMachine,
        reported: Reported,
        (rules, drivers): (&[Resource], &[&str]),
        settings: &DiscoverySettings,
        now: Timestamp,
    ) -> Self {
        let text = format!(
            "discovered: booted from {} by {}, enrolled with driver {}; waits for approval",
            machine.mac, machine.address, settings.driver
        );
        let found = Self::before_rules(machine, &reported, settings, now);
        let mut events = vec![request::event(EventKind::Transition, Severity::Info, text, now)];
        let Reported { mut inventory, bmc } = reported;
        let findings = Findings {
            node: found.0.clone(),
            ports: found.1.clone(),
            inventory: inventory.inventory.clone(),
            plugin_data: inventory.plugin_data.clone(),
        };
        let applied = apply(rules, findings).map_err(|failure| failure.to_string());
        let (mut node, ports) = match applied.and_then(|applied| with_driver(applied, drivers)) {
            Ok(Applied { findings, notes }) => {
                events.extend(notes.into_iter().map(|note| note.event(now)));
                inventory.ruled = findings.plugin_data != inventory.plugin_data;
                inventory.plugin_data = findings.plugin_data;
                (findings.node, findings.ports)
            }
            Err(why) => {
                let text = format!("no inspection rule was applied: {why}");
                events.push(request::event(EventKind::Agent, Severity::Error, text, now));
                found
            }
        };
        // A rule may have chosen another driver, whose address has another name.
        set_bmc_address(&mut node, bmc);
        Self { new: NewNode { node, inventory, ports }, events }
    }

    fn before_rules(
        machine: &DiscoveredMachine,
        reported: &Reported,
        settings: &DiscoverySettings,
        now: Timestamp,
    ) -> (Node, Vec<Resource>) {
        let found = &reported.inventory.inventory;
        let mut node = Node::enrolled(Uuid::new_v4(), &settings.driver, now);
        node.properties.extend(inventory::properties(found));
        node.inspection_finished_at = Some(now);
        storage::inspected(&mut node, found);
        set_bmc_address(&mut node, reported.bmc);
        let evidence = InterfaceEvidence::These { fetched: &[machine.mac], bmc: &[] };
        let of = (node.uuid, machine.id);
        let ports = interface::port_changes(found, &[], (settings.add_ports, evidence), of, now).new;
        (node, ports)
    }
}

/// Refuses what rules made of a node, if they chose a driver that the controller does not have.
fn with_driver(applied: Applied, drivers: &[&str]) -> Result<Applied, String> {
    let driver = applied.findings.node.driver.as_str();
    match drivers.contains(&driver) {
        true => Ok(applied),
        false => Err(format!(
            "they set driver {driver:?}, which is not enabled; enabled are {}",
            drivers.join(", ")
        )),
    }
}

/// Under the name that the driver knows, unless there is one.
fn set_bmc_address(node: &mut Node, address: Option<IpAddr>) {
    let Some(address) = address else { return };
    let (key, text) = match (node.driver.as_str(), address) {
        ("redfish", IpAddr::V6(address)) => ("redfish_address", format!("[{address}]")),
        ("redfish", address) => ("redfish_address", address.to_string()),
        ("ipmi", address) => ("ipmi_address", address.to_string()),
        _ => return,
    };
    node.driver_info.entry(key).or_insert(text.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ResourceKind;
    use model::discovery::{DiscoveryLimits, UnknownBoot, machine_to_boot};
    use model::interface::AddPorts;
    use serde_json::{Value, json};
    use std::time::Duration;

    const MAC: &str = "52:54:00:00:00:01";
    const NOW: Timestamp = Timestamp(7);

    fn made(rules: Value, bmc: &str) -> DiscoveredNode {
        let limits = DiscoveryLimits { wait: Duration::from_secs(60), per_minute: 1, waiting: 1 };
        let boot = UnknownBoot { mac: MAC.parse().unwrap(), from: [10, 9, 0, 7].into(), at: NOW };
        let machine = machine_to_boot(&[], &boot, &limits).unwrap();
        let inventory = json!({
            "interfaces": [
                {"name": "eno1", "mac_address": MAC, "ipv4_address": "10.9.0.7"},
                {"name": "eno2", "mac_address": "52:54:00:00:00:02"},
            ],
            "cpu": {"count": 8}, "memory": {"physical_mb": 2048}, "boot": {"pxe_interface": MAC},
        });
        let inventory = Inventory {
            inventory,
            plugin_data: json!({}),
            at: NOW,
            source: "agent".to_owned(),
            ruled: false,
        };
        let settings = DiscoverySettings {
            networks: Vec::new(),
            limits,
            driver: "redfish".to_owned(),
            add_ports: AddPorts::Pxe,
        };
        let rules: Vec<Resource> = rules
            .as_array()
            .unwrap()
            .iter()
            .map(|rule| {
                let mut resource = Resource::new(ResourceKind::InspectionRule, Uuid::new_v4(), NOW);
                resource.fields = rule.as_object().unwrap().clone();
                resource
            })
            .collect();
        let drivers: &[&str] = &["redfish", "ipmi"];
        DiscoveredNode::of(
            &machine,
            Reported { inventory, bmc: bmc.parse().ok() },
            (&rules, drivers),
            &settings,
            NOW,
        )
    }

    fn rule(action: Value) -> Value {
        json!([{"conditions": [], "actions": [action], "priority": 0, "phase": "main"}])
    }

    #[test]
    fn a_report_makes_a_node_with_the_port_that_booted() {
        let made = made(json!([]), "192.0.2.9");
        let NewNode { node, inventory, ports } = made.new;
        assert_eq!(node.provision_state, model::ProvisionState::Enroll);
        assert_eq!((&node.properties["cpus"], &node.properties["memory_mb"]), (&json!(8), &json!(2048)));
        assert_eq!(node.driver_info["redfish_address"], "192.0.2.9");
        assert_eq!(node.inspection_finished_at, Some(NOW));
        assert!(node.run.is_none());
        let ports: Vec<_> = ports.iter().map(|port| (port.node, port.address())).collect();
        assert_eq!(ports, [(Some(node.uuid), MAC)]);
        assert!(!inventory.ruled);
        assert_eq!(made.events.len(), 1);
        assert!(made.events[0].text.contains("52:54:00:00:00:01 by 10.9.0.7"), "{}", made.events[0].text);
    }

    #[test]
    fn rules_change_it_and_one_that_fails_changes_nothing() {
        let owner = json!({"op": "set-attribute", "args": {"path": "owner", "value": "alpha"}});
        assert_eq!(made(rule(owner), "").new.node.other["owner"], "alpha");
        let driver = json!({"op": "set-attribute", "args": {"path": "driver", "value": "ipmi"}});
        assert_eq!(made(rule(driver), "2001:db8::9").new.node.driver_info["ipmi_address"], "2001:db8::9");
        let unknown = json!({"op": "set-attribute", "args": {"path": "driver", "value": "idrac"}});
        for (action, why) in
            [(json!({"op": "fail", "args": {"msg": "not ours"}}), "not ours"), (unknown, "\"idrac\"")]
        {
            let made = made(rule(action), "2001:db8::9");
            assert_eq!(made.new.node.driver, "redfish");
            assert_eq!(made.new.node.driver_info["redfish_address"], "[2001:db8::9]");
            assert_eq!(made.new.ports.len(), 1);
            let last = made.events.last().unwrap();
            assert_eq!(last.severity, Severity::Error);
            assert!(last.text.contains(why), "{}", last.text);
        }
    }
}
