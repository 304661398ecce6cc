//! Which interfaces of an agent's report become ports.

use crate::situation::{NOW, node, snapshot};
use conductor::Settings;
use conductor::decision::{Action, ActionError, Change, Decision, Outcome, Snapshot};
use conductor::stages::{apply_outcome, decide};
use model::boot::Boot;
use model::interface::AddPorts;
use model::run::Cursor;
use model::{Contact, Inventory, ProvisionState, Resource, Run, RunKind};
use serde_json::{Value, json};

/// It fetched the boot script.
const BOOTED: &str = "52:54:00:00:00:01";
/// The BMC knows it.
const SECOND: &str = "52:54:00:00:00:02";
/// Only the agent reports it.
const PLANTED: &str = "52:54:00:00:00:66";

fn inventory(addresses: &[&str]) -> Inventory {
    let nics: Vec<Value> =
        addresses.iter().map(|mac| json!({"name": format!("nic-{mac}"), "mac_address": mac})).collect();
    let inventory = json!({"interfaces": nics});
    Inventory { inventory, plugin_data: json!({}), at: NOW, source: "agent".into(), ruled: false }
}

/// A node without ports whose agent reported three interfaces, and does not say which of them it booted from.
fn reported(fetched: &[&str]) -> Snapshot {
    let mut node = node(ProvisionState::InspectWait, Cursor::AwaitInventory, 0);
    let mut run = Run::new(RunKind::Inspect, NOW);
    (run.cursor, run.booted) = (Cursor::AwaitInventory, true);
    node.run = Some(run);
    let macs = fetched.iter().map(|mac| mac.parse().unwrap()).collect();
    let contact = Contact { boot: Some(Boot { macs, ..Boot::fresh() }), ..Contact::default() };
    let mut snapshot = snapshot(node, contact, NOW);
    snapshot.inventory = Some(inventory(&[BOOTED, SECOND, PLANTED]));
    snapshot
}

fn settings(add: AddPorts) -> Settings {
    Settings { inspection_add_ports: add, ..Settings::default() }
}

fn new_ports(change: &Change) -> Vec<&str> {
    assert_ne!(
        change.node.run.as_ref().unwrap().cursor,
        Cursor::AwaitInventory,
        "{:?}",
        change.node.last_error
    );
    change.inspected.iter().flat_map(|inspected| &inspected.new_ports).map(Resource::address).collect()
}

fn waiting(change: &Change) -> Option<&str> {
    let said = change.events.iter().find(|event| event.text.contains("only the agent's report names them"));
    said.map(|event| event.text.rsplit_once(": ").unwrap().1)
}

#[test]
fn interfaces_become_ports_that_fetched_the_boot_script_or_that_the_bmc_reports() {
    let seen = reported(&[BOOTED]);
    assert_eq!(decide(&seen, &settings(AddPorts::Pxe)), Decision::Act(Action::InspectBmc));
    let asked = |outcome| apply_outcome(&seen, &Action::InspectBmc, outcome, &settings(AddPorts::Pxe));

    let change = asked(Outcome::Inventory(inventory(&[SECOND])));
    assert_eq!(new_ports(&change), [BOOTED, SECOND]);
    assert_eq!(waiting(&change), Some(PLANTED));
    assert_eq!(change.events.iter().filter(|event| event.text.contains(PLANTED)).count(), 1);

    // A BMC that cannot be asked confirms nothing, and does not end the inspection.
    let failed = ActionError { text: "no".into(), retryable: true, unreachable: true };
    let change = asked(Outcome::Failed(failed));
    assert_eq!(new_ports(&change), [BOOTED]);
    assert_eq!(waiting(&change), Some(format!("{SECOND}, {PLANTED}").as_str()));
}

#[test]
fn without_a_fetch_here_nothing_of_the_report_becomes_a_port() {
    let seen = reported(&[]);
    let change = apply_outcome(
        &seen,
        &Action::InspectBmc,
        Outcome::Inventory(inventory(&[])),
        &settings(AddPorts::Pxe),
    );
    assert_eq!(new_ports(&change), Vec::<&str>::new());
}

#[test]
fn what_an_operator_chose_holds() {
    let seen = reported(&[BOOTED]);
    for (add, ports) in [(AddPorts::All, vec![BOOTED, SECOND, PLANTED]), (AddPorts::Disabled, vec![])] {
        let Decision::Record(change) = decide(&seen, &settings(add)) else {
            panic!("{add:?}: the BMC is asked")
        };
        assert_eq!((new_ports(&change), waiting(&change)), (ports, None), "{add:?}");
    }
}

#[test]
fn a_bmc_is_not_asked_about_interfaces_that_are_known() {
    let mut seen = reported(&[BOOTED]);
    seen.inventory = Some(inventory(&[BOOTED]));
    let Decision::Record(change) = decide(&seen, &settings(AddPorts::Pxe)) else {
        panic!("the BMC is asked")
    };
    assert_eq!((new_ports(&change), waiting(&change)), (vec![BOOTED], None));
}
