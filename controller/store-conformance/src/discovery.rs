//! Machines that no node is known for: booted within limits, made a node or not at all.

use super::samples::{
    assert_duplicate, assert_not_found, assert_stale, at, create, enrolled, event, new_node, new_port, rung,
};
use model::discovery::{DiscoveredMachine, DiscoveryLimits, DiscoveryState, NotBooted, UnknownBoot};
use model::{Inventory, Node, ProvisionState, ResourceKind};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::{NewNode, NodeChange, Noun, Store, StoreError, Unique, inventory};
use uuid::Uuid;

const LIMITS: DiscoveryLimits =
    DiscoveryLimits { wait: Duration::from_secs(3600), per_minute: 3, waiting: 10 };

/// The address 52:54:00:00:00:`last` asks, as many microseconds after the start.
fn boot(last: u8, n: i64) -> UnknownBoot {
    let mac = format!("52:54:00:00:00:{last:02x}").parse().expect("a MAC address");
    UnknownBoot { mac, from: [192, 0, 2, last].into(), at: at(n) }
}

async fn booted<S: Store>(store: &S, last: u8) -> DiscoveredMachine {
    let nonce = store.boot_unknown(boot(last, i64::from(last)), LIMITS).await.unwrap().expect("it is booted");
    let id = DiscoveredMachine::id_of(&nonce).expect("its id");
    let machine = store.discovered_machine(id).await.unwrap();
    assert_eq!(machine.nonce, nonce);
    machine
}

fn found(data: Value) -> Inventory {
    let inventory = json!({"interfaces": [{"mac_address": "52:54:00:00:00:01"}]});
    Inventory { inventory, plugin_data: data, at: at(3), source: "agent".to_owned(), ruled: false }
}

/// A node of this name, with a port of the machine's address.
fn new(name: &str, last: u8) -> (Node, NodeChange) {
    let node = new_node(name);
    let made =
        NewNode { node: node.clone(), inventory: found(json!({})), ports: vec![new_port(node.uuid, last)] };
    (node, NodeChange::Create(Box::new(made)))
}

fn waiting(machine: &DiscoveredMachine, node: Uuid) -> DiscoveredMachine {
    DiscoveredMachine { state: DiscoveryState::Waiting, node: Some(node), ..machine.clone() }
}

pub async fn an_unknown_machine_is_booted_once<S: Store>(store: Arc<S>) {
    let first = booted(&*store, 1).await;
    assert_eq!((first.version, first.state), (1, DiscoveryState::Booted));
    assert_eq!((first.mac, first.address), (boot(1, 1).mac, boot(1, 1).from));
    let again = store.boot_unknown(boot(1, 9), LIMITS).await.unwrap();
    assert_eq!(again, Ok(first.nonce.clone()), "its loader asks again");
    let elsewhere = UnknownBoot { from: [192, 0, 2, 66].into(), ..boot(1, 9) };
    assert_eq!(store.boot_unknown(elsewhere, LIMITS).await.unwrap(), Err(NotBooted::AnotherAddress));
    const HOUR: i64 = 3_600_000_000;
    assert_eq!(store.boot_unknown(boot(1, HOUR), LIMITS).await.unwrap(), Err(NotBooted::BootedBefore));
    assert_eq!(store.discovered_machines().await.unwrap(), std::slice::from_ref(&first));
    // A day later it is another machine, and the first is gone.
    let nonce = store.boot_unknown(boot(1, 25 * HOUR), LIMITS).await.unwrap().expect("it is booted");
    assert_not_found(store.discovered_machine(first.id).await, Noun::DiscoveredMachine, first.id);
    let machines = store.discovered_machines().await.unwrap();
    assert_eq!(machines.iter().map(|machine| &machine.nonce).collect::<Vec<_>>(), [&nonce]);
}

pub async fn a_known_machine_is_not_discovered<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    create(&*store, new_port(node, 1)).await.unwrap();
    assert_eq!(store.boot_unknown(boot(1, 1), LIMITS).await.unwrap(), Err(NotBooted::Known));
    // Nor is one that reports such an address besides its own.
    let mut machine = booted(&*store, 2).await;
    machine.macs.push(boot(1, 1).mac);
    let (node, change) = new("two", 2);
    let refused = store.write_discovered(waiting(&machine, node.uuid), change, vec![event(1)]).await;
    assert_duplicate(refused, Unique::ResourceKey, "52:54:00:00:00:01");
    assert_not_found(store.node(node.uuid).await, Noun::Node, node.uuid);
    assert_eq!(store.resources(ResourceKind::Port, None).await.unwrap().len(), 1);
    assert_eq!(store.discovered_machine(machine.id).await.unwrap().state, DiscoveryState::Booted);
}

pub async fn of_many_unknown_machines_at_once_few_are_booted<S: Store + 'static>(store: Arc<S>) {
    let ask = |last: u8| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.boot_unknown(boot(last, 1), LIMITS).await.unwrap() })
    };
    let mut given = 0;
    for asked in (1..=8).map(ask).collect::<Vec<_>>() {
        match asked.await.unwrap() {
            Ok(_) => given += 1,
            Err(refused) => assert_eq!(refused, NotBooted::TooManyInAMinute),
        }
    }
    assert_eq!(given, LIMITS.per_minute);
    assert_eq!(store.discovered_machines().await.unwrap().len(), LIMITS.per_minute);
}

pub async fn a_machine_becomes_a_node_whole_or_not_at_all<S: Store>(store: Arc<S>) {
    enrolled(&*store, "taken").await;
    let machine = booted(&*store, 1).await;
    let (node, change) = new("one", 1);
    let NodeChange::Create(made) = change.clone() else { unreachable!("a node is made") };
    let named = Node { name: Some("taken".to_owned()), ..node.clone() };
    let large = found(json!("x".repeat(inventory::MAX)));
    for (change, duplicate) in [
        (NodeChange::Create(Box::new(NewNode { node: named, ..(*made).clone() })), true),
        (NodeChange::Create(Box::new(NewNode { inventory: large, ..(*made).clone() })), false),
    ] {
        match store.write_discovered(waiting(&machine, node.uuid), change, vec![event(1)]).await {
            Err(StoreError::Duplicate { what: Unique::NodeName, .. }) => assert!(duplicate),
            Err(StoreError::TooLarge { .. }) => assert!(!duplicate),
            other => panic!("expected a refusal, got {other:?}"),
        }
    }
    assert_eq!(store.discovered_machine(machine.id).await.unwrap(), machine);
    assert_eq!(store.resources(ResourceKind::Port, None).await.unwrap(), []);

    let mut ears = store.bell().listen();
    let wanted = waiting(&machine, node.uuid);
    let written = store.write_discovered(wanted.clone(), change.clone(), vec![event(1)]).await.unwrap();
    assert_eq!(written, DiscoveredMachine { version: 2, ..wanted.clone() });
    assert_eq!(store.discovered_machine(machine.id).await.unwrap(), written);
    assert!(rung(&mut ears).contains(&node.uuid));
    let stored = store.node(node.uuid).await.unwrap();
    assert_eq!(stored, Node { version: 1, ..node.clone() });
    assert_eq!(store.inventory(node.uuid).await.unwrap(), Some(made.inventory.clone()));
    assert_eq!(store.history(node.uuid).await.unwrap().len(), 1);
    let ports = store.resources(ResourceKind::Port, Some(node.uuid)).await.unwrap();
    assert_eq!(ports.iter().map(|port| port.address()).collect::<Vec<_>>(), ["52:54:00:00:00:01"]);
    assert_stale(store.write_discovered(wanted, change, vec![event(1)]).await, machine.id);
}

pub async fn an_operators_decision_is_written_with_its_node<S: Store>(store: Arc<S>) {
    let machine = booted(&*store, 1).await;
    let (node, change) = new("one", 1);
    let machine = store.write_discovered(waiting(&machine, node.uuid), change, vec![]).await.unwrap();
    let approved = DiscoveredMachine { state: DiscoveryState::Approved, ..machine.clone() };
    let read = store.node(node.uuid).await.unwrap();
    let old = Node { version: 7, ..read.clone() };
    let stale =
        store.write_discovered(approved.clone(), NodeChange::Update(Box::new(old)), vec![event(1)]).await;
    assert_stale(stale, node.uuid);
    assert_eq!(store.discovered_machine(machine.id).await.unwrap(), machine, "both or none");
    let update = NodeChange::Update(Box::new(read));
    let approved = store.write_discovered(approved, update, vec![event(1)]).await.unwrap();
    assert_eq!(store.node(node.uuid).await.unwrap().version, 2);
    assert_eq!(store.history(node.uuid).await.unwrap().len(), 1);

    let rejected = DiscoveredMachine { state: DiscoveryState::Rejected, ..approved.clone() };
    let stale = store.write_discovered(rejected.clone(), NodeChange::Delete(node.uuid, 1), vec![]).await;
    assert_stale(stale, node.uuid);
    let mut ears = store.bell().listen();
    let delete = NodeChange::Delete(node.uuid, 2);
    let rejected = store.write_discovered(rejected, delete, vec![event(2)]).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::from([node.uuid]));
    assert_not_found(store.node(node.uuid).await, Noun::Node, node.uuid);
    assert_eq!(store.resources(ResourceKind::Port, None).await.unwrap(), []);
    assert_eq!(store.boot_unknown(boot(1, 99), LIMITS).await.unwrap(), Err(NotBooted::Rejected));

    assert_stale(store.forget_discovered(machine.id, 1).await, machine.id);
    store.forget_discovered(machine.id, rejected.version).await.unwrap();
    let gone = store.forget_discovered(machine.id, rejected.version).await;
    assert_not_found(gone, Noun::DiscoveredMachine, machine.id);
    let unchanged = store.write_discovered(rejected, NodeChange::None, vec![]).await;
    assert_not_found(unchanged, Noun::DiscoveredMachine, machine.id);
    assert_ne!(booted(&*store, 1).await.id, machine.id);
}

pub async fn what_is_done_to_the_node_decides_about_its_machine<S: Store>(store: Arc<S>) {
    const LIMITS: DiscoveryLimits =
        DiscoveryLimits { wait: Duration::from_secs(3600), per_minute: 99, waiting: 2 };
    let mut nodes = Vec::new();
    for last in [1, 2] {
        let machine = booted(&*store, last).await;
        let (node, change) = new(&format!("node-{last}"), last);
        let machine = store.write_discovered(waiting(&machine, node.uuid), change, vec![]).await.unwrap();
        nodes.push((machine, store.node(node.uuid).await.unwrap()));
    }
    let refused = store.boot_unknown(boot(3, 9), LIMITS).await.unwrap();
    assert_eq!(refused, Err(NotBooted::TooManyWait), "two wait for an operator");

    let (managed, node) = nodes.remove(0);
    let node = Node { provision_state: ProvisionState::Verifying, ..node };
    let node = store.update_node(node, vec![], None).await.unwrap();
    let approved = DiscoveredMachine { state: DiscoveryState::Approved, ..managed.clone() };
    assert_eq!(store.discovered_machine(managed.id).await.unwrap(), approved);
    assert!(
        store.boot_unknown(boot(3, 9), LIMITS).await.unwrap().is_ok(),
        "the one that is managed waits no more"
    );
    assert_eq!(store.boot_unknown(boot(4, 9), LIMITS).await.unwrap(), Err(NotBooted::TooManyWait));

    let (deleted, gone) = nodes.remove(0);
    store.delete_node(gone.uuid, gone.version, vec![]).await.unwrap();
    let rejected = DiscoveredMachine { state: DiscoveryState::Rejected, ..deleted };
    assert_eq!(store.discovered_machine(rejected.id).await.unwrap(), rejected);
    assert_eq!(store.boot_unknown(boot(2, 9), LIMITS).await.unwrap(), Err(NotBooted::Rejected));
    assert!(
        store.boot_unknown(boot(4, 9), LIMITS).await.unwrap().is_ok(),
        "the one without a node waits no more"
    );
    let machines = store.discovered_machines().await.unwrap();
    assert_eq!(machines[..2], [approved, rejected], "a list says the same");

    // Verification failed: an operator has to decide again.
    let node = Node { provision_state: ProvisionState::Enroll, ..node };
    store.update_node(node, vec![], None).await.unwrap();
    assert_eq!(store.discovered_machine(managed.id).await.unwrap(), managed);
    assert_eq!(store.boot_unknown(boot(5, 9), LIMITS).await.unwrap(), Err(NotBooted::TooManyWait));
}
