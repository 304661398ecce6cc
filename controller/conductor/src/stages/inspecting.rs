//! INSPECTING and INSPECTWAIT: the inventory that the BMC or the agent reports, and the inspection rules applied to it.

use super::boot;
use super::fail::{self, retry_or_fail};
use super::medium;
use super::power_loss;
use super::second_agent;
use super::transition::at_work;
use super::view::View;
use super::wait::{is_due, is_overdue, sleep_on, unexpected, waiting_for_agent};
use crate::decision::{Action, Change, Decision, Outcome, Rules};
use inspection_rules::{Applied, Findings, apply};
use model::abilities::Inspect;
use model::history::{EventKind, Severity};
use model::interface::{self, AddPorts, InterfaceEvidence, Mac, PortChanges};
use model::inventory::properties;
use model::request::event;
use model::run::Cursor;
use model::{Inventory, Node, Resource, Timestamp, storage};
use serde_json::Value;
use store::Inspected;

pub(super) fn decide(view: &View) -> Decision {
    let snapshot = view.snapshot;
    if view.run.cursor == Cursor::AskInventory {
        return if is_due(snapshot) { Decision::Act(Action::InspectBmc) } else { sleep_on(&snapshot.node) };
    }
    if let Some(change) = second_agent::before_first_heartbeat(view).filter(|_| is_fetched_twice(view)) {
        return Decision::Record(Box::new(change));
    }
    if let Some(inventory) =
        snapshot.inventory.as_ref().filter(|inventory| inventory.at >= view.run.started_at)
    {
        // The BMC is asked once which of them are the node's.
        return match waiting(view, inventory, &[]).is_empty() {
            true => Decision::Record(Box::new(reported(view, inventory, &[]))),
            false => Decision::Act(Action::InspectBmc),
        };
    }
    let limit = view.budget();
    let wait = waiting_for_agent(view, "the ramdisk to send the inventory", limit);
    if is_overdue(&wait, snapshot.now) {
        let text = format!(
            "Timeout reached while inspecting the node: no inventory within {} s of power-on. {}",
            limit.as_secs(),
            medium::without_agent(view).unwrap_or_else(|| {
                "Please check if the ramdisk responsible for the inspecting is running on the node."
                    .to_owned()
            }),
        );
        return Decision::Record(Box::new(fail::failed(view, &text)));
    }
    match medium::unread(view, &wait) {
        Some(change) => Decision::Record(Box::new(change)),
        None => power_loss::sleep_or_look(view, wait),
    }
}

/// Whether the boot script was fetched by one that may not have it.
fn is_fetched_twice(view: &View) -> bool {
    view.snapshot.contact.rival.as_ref().is_some_and(|rival| rival.fetched)
}

/// The change by the report of an agent; these MAC addresses the BMC reports.
fn reported(view: &View, inventory: &Inventory, bmc: &[Mac]) -> Change {
    let now = view.snapshot.now;
    let mut change = inspected(view, inventory, evidence(view, bmc));
    let waiting = waiting(view, inventory, bmc);
    if !waiting.is_empty() {
        let addresses: Vec<String> = waiting.iter().map(Mac::to_string).collect();
        let text = format!(
            "interfaces that do not become ports, because only the agent's report names them (an operator can create them): {}",
            addresses.join(", ")
        );
        change.events.push(event(EventKind::Agent, Severity::Info, text, now));
    }
    change
}

/// The interfaces that only the report of an agent names.
fn waiting(view: &View, inventory: &Inventory, bmc: &[Mac]) -> Vec<Mac> {
    ports(view, inventory, evidence(view, bmc)).waiting
}

/// What else names the node's interfaces: the fetches of the boot script in this boot, and the BMC.
fn evidence<'a>(view: &View<'a>, bmc: &'a [Mac]) -> InterfaceEvidence<'a> {
    let fetched = view.snapshot.contact.boot.as_ref().map(|boot| boot.macs.as_slice()).unwrap_or_default();
    InterfaceEvidence::These { fetched, bmc }
}

/// The report of an agent, and what the BMC was asked about it. A BMC that does not answer confirms nothing.
fn compared(view: &View, outcome: Outcome) -> Change {
    let Some(inventory) = view.snapshot.inventory.as_ref() else {
        return fail::failed(view, "internal: the inventory that was reported is gone");
    };
    match outcome {
        Outcome::Inventory(bmc) => reported(view, inventory, &interface::addresses(&bmc.inventory)),
        Outcome::Failed(_) => reported(view, inventory, &[]),
        other => fail::failed(view, &unexpected("inspecting the BMC", &other).text),
    }
}

pub(super) fn apply_outcome(view: &View, action: &Action, outcome: Outcome) -> Change {
    if *action == Action::ReadPower {
        return power_loss::while_booting(view, &outcome);
    }
    if view.run.cursor == Cursor::AwaitInventory {
        return compared(view, outcome);
    }
    match outcome {
        Outcome::Inventory(inventory) => {
            let mut change = inspected(view, &inventory, InterfaceEvidence::NotNeeded);
            let fits = store::inventory::check(view.snapshot.node.uuid, &inventory).is_ok();
            let unchanged = || Box::new(Inspected { inventory, ports: Vec::new(), new_ports: Vec::new() });
            // The inventory of a failed inspection is stored too, so that users can see why it failed.
            change.inspected = change.inspected.or_else(|| fits.then(unchanged));
            change
        }
        Outcome::Failed(error) => retry_or_fail(view, error, "Failed to inspect the node"),
        other => fail::failed(view, &unexpected("inspecting the BMC", &other).text),
    }
}

/// Update the hardware-derived properties (specs/state-machine.txt, INSPECTING) and the ports, then apply the inspection
/// rules. Whatever neither mentions stays unchanged.
fn inspected(view: &View, inventory: &Inventory, evidence: InterfaceEvidence) -> Change {
    let now: Timestamp = view.snapshot.now;
    // ironic-python-agent reports failed collectors in `error`.
    if let Some(error) = inventory.plugin_data.get("error").and_then(Value::as_str).filter(|e| !e.is_empty())
    {
        return fail::failed(view, &format!("The ramdisk could not inspect the node: {error}"));
    }
    if let Err(too_large) = store::inventory::check(view.snapshot.node.uuid, inventory) {
        return fail::failed(view, &format!("Failed to finish inspection: {too_large}"));
    }
    let mut change = boot::booted(view);
    change.node.properties.extend(properties(&inventory.inventory));
    change.node.inspection_finished_at = Some(now);
    storage::inspected(&mut change.node, &inventory.inventory);
    let ports = ports(view, inventory, evidence);
    if let Err(why) = apply_rules(view, inventory, ports, &mut change) {
        return fail::failed(view, &format!("Failed to finish inspection: {why}"));
    }
    at_work(&mut change, &format!("the inventory came from {}", inventory.source), now);
    change
}

/// What the inventory makes of the node's ports.
fn ports(view: &View, inventory: &Inventory, evidence: InterfaceEvidence) -> PortChanges {
    let snapshot = view.snapshot;
    let (add, of) = ((add_ports(view), evidence), (snapshot.node.uuid, view.run.id));
    interface::port_changes(&inventory.inventory, &snapshot.rules.ports, add, of, snapshot.now)
}

/// Which interfaces become ports; none of the invented ones of fake inspection.
fn add_ports(view: &View) -> AddPorts {
    match &view.snapshot.abilities {
        Ok(able) if able.inspect == Inspect::Fake => AddPorts::Disabled,
        _ => view.settings.inspection_add_ports,
    }
}

/// After a rule has chosen another driver: its interfaces are its own defaults, unless it has those that the node names.
///
/// # Errors
/// It is no driver of this controller.
fn fit_driver(node: &mut Node, before: &str, drivers: &[String]) -> Result<(), String> {
    if node.driver == before {
        return Ok(());
    }
    let offered =
        bmc::interfaces(&node.driver).filter(|_| drivers.contains(&node.driver)).ok_or_else(|| {
            format!(
                "inspection rules set driver {:?}, which is not enabled; enabled are {}",
                node.driver,
                drivers.join(", ")
            )
        })?;
    node.interfaces.retain(|field, named| {
        let interface = field.strip_suffix("_interface").unwrap_or(field);
        let of = offered.iter().find(|of| of.name == interface);
        of.is_some_and(|of| of.enabled.iter().any(|known| known.name == *named))
    });
    Ok(())
}

/// Apply the inspection rules to what was found, and put the result into `change`.
///
/// # Errors
/// A rule failed or the result is too large; `change` must then be discarded.
fn apply_rules(
    view: &View,
    inventory: &Inventory,
    ports: PortChanges,
    change: &mut Change,
) -> Result<(), String> {
    let (Rules { rules, ports: read, drivers }, now) = (&view.snapshot.rules, view.snapshot.now);
    let PortChanges { known, new, waiting: _ } = ports;
    let found = Findings {
        node: change.node.clone(),
        ports: known.into_iter().chain(new).collect(),
        inventory: inventory.inventory.clone(),
        plugin_data: inventory.plugin_data.clone(),
    };
    let Applied { findings, notes } = apply(rules, found).map_err(|failure| failure.to_string())?;
    let before = std::mem::replace(&mut change.node, findings.node);
    fit_driver(&mut change.node, &before.driver, drivers)?;
    change.events.extend(notes.into_iter().map(|note| note.event(now)));
    let mut ports = findings.ports;
    let new_ports = ports.split_off(read.len());
    if !new_ports.is_empty() {
        let addresses: Vec<&str> = new_ports.iter().map(Resource::address).collect();
        let text =
            format!("interfaces become ports, unless a port has their address: {}", addresses.join(", "));
        change.events.push(event(EventKind::Agent, Severity::Info, text, now));
    }
    let changed = read.iter().zip(ports).filter(|(read, new)| *read != new);
    let ports: Vec<_> = changed.map(|(_, new)| Resource { updated_at: Some(now), ..new }).collect();
    let changed_by_rules = findings.plugin_data != inventory.plugin_data;
    if changed_by_rules || !ports.is_empty() || !new_ports.is_empty() {
        let inventory = Inventory {
            plugin_data: findings.plugin_data,
            ruled: changed_by_rules || inventory.ruled,
            ..inventory.clone()
        };
        store::inventory::check(change.node.uuid, &inventory).map_err(|error| error.to_string())?;
        change.inspected = Some(Box::new(Inspected { inventory, ports, new_ports }));
    }
    Ok(())
}
