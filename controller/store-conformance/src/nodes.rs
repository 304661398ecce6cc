//! Nodes: versions, uniqueness, order, history, deletion, waking.

use super::samples::{
    assert_duplicate, assert_not_found, assert_stale, at, beat, create, enrolled, event, new_node, new_port,
    object, rung,
};
use model::agent::Contact;
use model::{Basis, Catalogue, Event, Inventory, Node, ProvisionState, Resource, ResourceKind};
use serde_json::{Map, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::history_limits::MAX_EVENTS;
use store::{Noun, StepKind, Store, StoreError, TokenRequest, Unique};
use uuid::Uuid;

pub async fn a_node_comes_back_whole<S: Store>(store: Arc<S>) {
    let mut node = new_node("one");
    node.version = 17;
    let stored = store.create_node(node.clone(), vec![]).await.unwrap();
    node.version = 1;
    assert_eq!(stored, node, "the version of a new node is 1 whatever it came with");
    assert_eq!(store.node(node.uuid).await.unwrap(), node);

    node.name = None;
    node.instance_uuid = None;
    node.next_wake_at = None;
    node.last_error = Some("it broke".to_owned());
    node.extra = object(json!({"changed": true}));
    let stored = store.update_node(node.clone(), vec![], None).await.unwrap();
    node.version = 2;
    assert_eq!(stored, node);
    assert_eq!(store.node(node.uuid).await.unwrap(), node);
    assert_eq!(store.nodes().await.unwrap(), [node]);
}

/// A look returns a node that any writer has changed since `known`, and always the contact.
pub async fn a_look_returns_a_changed_node<S: Store>(store: Arc<S>) {
    let first = enrolled(&*store, "one").await;
    let look = async |known| store.look(first.uuid, known).await.unwrap();
    assert_eq!(look(None).await, (Some(first.clone()), Contact::default()));
    assert_eq!(look(Some(1)).await, (None, Contact::default()));
    assert_eq!(look(Some(0)).await.0, Some(first.clone()));

    store.grant_token(first.uuid, TokenRequest::without_nonce("token", None, at(0))).await.unwrap();
    store.record_heartbeat(first.uuid, "token", beat(1)).await.unwrap();
    let contact = store.contact(first.uuid).await.unwrap();
    assert_eq!(look(Some(1)).await, (None, contact.clone()), "a heartbeat does not change the node");

    let mut next = first.clone();
    next.last_error = Some("it broke".to_owned());
    let next = store.update_node(next, vec![], None).await.unwrap();
    assert_eq!(look(Some(1)).await, (Some(next.clone()), contact));
    assert_eq!(look(Some(2)).await.0, None);
    store.delete_node(next.uuid, 2, vec![]).await.unwrap();
    assert_not_found(store.look(next.uuid, Some(2)).await, Noun::Node, next.uuid);
    assert_not_found(store.look(next.uuid, None).await, Noun::Node, next.uuid);
}

pub async fn lookup_by_ident<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "Rack1-u2").await;
    let other = enrolled(&*store, "other").await;
    for ident in [node.uuid.to_string(), node.uuid.to_string().to_uppercase(), "Rack1-u2".to_owned()] {
        assert_eq!(store.node_by_ident(&ident).await.unwrap(), node, "{ident}");
    }
    for ident in ["rack1-u2", "Rack1", "", "%", "Rack1-u2 "] {
        assert_not_found(store.node_by_ident(ident).await, Noun::Node, ident);
    }
    let mut renamed = node;
    renamed.name = Some("new".to_owned());
    let renamed = store.update_node(renamed, vec![], None).await.unwrap();
    assert_not_found(store.node_by_ident("Rack1-u2").await, Noun::Node, "Rack1-u2");
    assert_eq!(store.node_by_ident("new").await.unwrap(), renamed);
    assert_eq!(store.node_by_ident("other").await.unwrap(), other);
}

pub async fn order_of_lists<S: Store>(store: Arc<S>) {
    let mut expected = Vec::new();
    for (index, created) in [30, 10, 20, 10, 10].into_iter().enumerate() {
        let mut node = new_node(&format!("n{index}"));
        node.created_at = at(created);
        expected.push(store.create_node(node, vec![]).await.unwrap());
    }
    expected.sort_by_key(|node| (node.created_at, node.uuid));
    assert_eq!(store.nodes().await.unwrap(), expected);
    let (inspecting, waiting) = (ProvisionState::Inspecting, ProvisionState::InspectWait);
    assert_eq!(store.nodes_in(&[inspecting, waiting]).await.unwrap(), []);
    for (index, state) in [(3, inspecting), (1, waiting), (2, ProvisionState::Active)] {
        let node = Node { provision_state: state, ..expected[index].clone() };
        expected[index] = store.update_node(node, vec![], None).await.unwrap();
    }
    let found = store.nodes_in(&[inspecting, waiting]).await.unwrap();
    assert_eq!(found, [expected[1].clone(), expected[3].clone()]);
    assert_eq!(store.nodes_in(&[waiting]).await.unwrap(), [expected[1].clone()]);

    let mut ports = Vec::new();
    for (index, created) in [30, 10, 20, 10].into_iter().enumerate() {
        let port = new_port(expected[index % 2].uuid, u8::try_from(index).unwrap());
        ports.push(create(&*store, Resource { created_at: at(created), ..port }).await.unwrap());
    }
    ports.sort_by_key(|port| (port.created_at, port.uuid));
    assert_eq!(store.resources(ResourceKind::Port, None).await.unwrap(), ports);
    ports.retain(|port| port.node == Some(expected[1].uuid));
    assert_eq!(store.resources(ResourceKind::Port, Some(expected[1].uuid)).await.unwrap(), ports);
}

pub async fn a_node_becomes_available_only_with_a_basis<S: Store>(store: Arc<S>) {
    let refused = |written: store::Result<Node>| {
        let text = written.expect_err("no basis").to_string();
        assert!(text.contains("available without a basis"), "{text}");
    };
    let groundless = |node: Node| Node { provision_state: ProvisionState::Available, ..node };
    let new = groundless(new_node("new"));
    refused(store.create_node(new.clone(), vec![]).await);
    assert_not_found(store.node(new.uuid).await, Noun::Node, new.uuid);
    let node = enrolled(&*store, "n").await;
    refused(store.update_node(groundless(node.clone()), vec![event(1)], None).await);
    assert_eq!(store.node(node.uuid).await.unwrap(), node);
    assert_eq!(store.history(node.uuid).await.unwrap(), []);
    let mut based = node;
    based.make_available(Basis::NotCleaned, at(1));
    let based = store.update_node(based, vec![], None).await.unwrap();
    assert_eq!(store.node(based.uuid).await.unwrap().basis, Some(Basis::NotCleaned));
    // A node that an earlier version made available has none; here it loses it.
    let old = store.update_node(Node { basis: None, ..based }, vec![], None).await.unwrap();
    store.update_node(Node { maintenance: true, ..old }, vec![], None).await.unwrap();
}

pub async fn unique_values<S: Store>(store: Arc<S>) {
    let first = enrolled(&*store, "first").await;
    let instance = first.instance_uuid.unwrap();
    let second = enrolled(&*store, "second").await;

    assert_duplicate(store.create_node(first.clone(), vec![]).await, Unique::NodeUuid, first.uuid);
    let mut same_instance = new_node("third");
    same_instance.instance_uuid = Some(instance);
    assert_duplicate(store.create_node(same_instance, vec![]).await, Unique::InstanceUuid, instance);
    assert_duplicate(store.create_node(new_node("first"), vec![event(1)]).await, Unique::NodeName, "first");

    let mut renamed = second.clone();
    renamed.name = Some("first".to_owned());
    assert_duplicate(store.update_node(renamed, vec![event(2)], None).await, Unique::NodeName, "first");
    let mut moved = second.clone();
    moved.instance_uuid = Some(instance);
    assert_duplicate(store.update_node(moved, vec![event(3)], None).await, Unique::InstanceUuid, instance);

    assert_eq!(store.nodes().await.unwrap().len(), 2, "a rejected node was not stored");
    assert_eq!(store.node(second.uuid).await.unwrap(), second);
    assert_eq!(store.history(second.uuid).await.unwrap(), []);

    // A node may keep its own values, any number may have none, and a value given up is free.
    let mut first = store.update_node(first, vec![], None).await.unwrap();
    first.name = None;
    first.instance_uuid = None;
    store.update_node(first, vec![], None).await.unwrap();
    let mut nameless = new_node("x");
    (nameless.name, nameless.instance_uuid) = (None, None);
    store.create_node(nameless, vec![]).await.unwrap();
    let mut heir = new_node("first");
    heir.instance_uuid = Some(instance);
    store.create_node(heir, vec![]).await.unwrap();
}

pub async fn a_stale_write_changes_nothing<S: Store>(store: Arc<S>) {
    let read = enrolled(&*store, "one").await;
    let stored = store.update_node(read.clone(), vec![event(1)], None).await.unwrap();
    for version in [0, 1, 3, u64::MAX] {
        let mut late = read.clone();
        late.version = version;
        late.last_error = Some("late".to_owned());
        assert_stale(store.update_node(late, vec![event(2)], None).await, read.uuid);
        assert_stale(store.delete_node(read.uuid, version, vec![]).await, read.uuid);
    }
    assert_eq!(store.node(read.uuid).await.unwrap(), stored);
    assert_eq!(store.history(read.uuid).await.unwrap().len(), 1);
}

pub async fn unknown_nodes<S: Store>(store: Arc<S>) {
    let ghost = new_node("ghost");
    let uuid = ghost.uuid;
    let catalogue = Catalogue { steps: vec![], hardware_manager_version: Map::new(), learnt_at: at(0) };
    assert_not_found(store.node(uuid).await, Noun::Node, uuid);
    assert_not_found(store.update_node(ghost, vec![event(1)], None).await, Noun::Node, uuid);
    assert_not_found(store.delete_node(uuid, 0, vec![]).await, Noun::Node, uuid);
    assert_not_found(
        store.grant_token(uuid, TokenRequest::without_nonce("t", None, at(0))).await,
        Noun::Node,
        uuid,
    );
    assert_not_found(store.record_heartbeat(uuid, "t", beat(0)).await, Noun::Node, uuid);
    assert_not_found(store.forget_agent(uuid, None, None).await, Noun::Node, uuid);
    assert_not_found(store.put_catalogue(uuid, StepKind::Clean, catalogue, None).await, Noun::Node, uuid);
    assert_not_found(store.take_lease(uuid, "c", at(0), at(9)).await, Noun::Node, uuid);
    assert_not_found(create(&*store, new_port(uuid, 1)).await, Noun::Node, uuid);
    nothing_belongs_to(&*store, uuid).await;
    assert_eq!(store.resources(ResourceKind::Port, None).await.unwrap(), []);
}

/// Two tasks write one version at the same time.
pub async fn of_two_updates_at_once_one_wins<S: Store + 'static>(store: Arc<S>) {
    let mut node = enrolled(&*store, "one").await;
    for round in 0..20 {
        let write = |text: String| {
            let (store, mut mine) = (store.clone(), node.clone());
            mine.last_error = Some(text);
            tokio::spawn(async move { store.update_node(mine, vec![event(1)], None).await })
        };
        let (a, b) = (write(format!("{round} a")), write(format!("{round} b")));
        let winner = match (a.await.unwrap(), b.await.unwrap()) {
            (Ok(won), Err(StoreError::Stale(_))) | (Err(StoreError::Stale(_)), Ok(won)) => won,
            other => panic!("exactly one of two updates of one version wins, got {other:?}"),
        };
        assert_eq!(winner.version, node.version + 1);
        assert_eq!(store.node(node.uuid).await.unwrap(), winner);
        node = winner;
    }
    assert_eq!(store.history(node.uuid).await.unwrap().len(), 20, "the loser's events are not stored");
}

/// Read, change, write, and again when stale: every one of many increments arrives.
pub async fn many_writers_lose_no_update<S: Store + 'static>(store: Arc<S>) {
    let uuid = enrolled(&*store, "one").await.uuid;
    let increment = |writer: usize| {
        let store = store.clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                loop {
                    let mut node = store.node(uuid).await.unwrap();
                    let count = node.properties.get("count").and_then(|count| count.as_u64()).unwrap_or(0);
                    node.properties.insert("count".to_owned(), (count + 1).into());
                    match store.update_node(node, vec![], None).await {
                        Ok(_) => break,
                        Err(StoreError::Stale(_)) => {}
                        Err(error) => panic!("writer {writer}: {error}"),
                    }
                }
            }
        })
    };
    let writers: Vec<_> = (0..8).map(increment).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let node = store.node(uuid).await.unwrap();
    assert_eq!((node.properties["count"].as_u64(), node.version), (Some(80), 81));
}

pub async fn history_comes_with_the_write<S: Store>(store: Arc<S>) {
    let events: Vec<_> = [5, 4, 3, 2].map(event).to_vec();
    let node = store.create_node(new_node("one"), events[..2].to_vec()).await.unwrap();
    let other = enrolled(&*store, "other").await;
    store.update_node(node.clone(), events[2..].to_vec(), None).await.unwrap();
    let content = |events: &[Event]| -> Vec<_> {
        events.iter().map(|event| (event.uuid, event.at, event.kind, event.text.clone())).collect()
    };
    let stored = store.history(node.uuid).await.unwrap();
    assert_eq!(content(&stored), content(&events), "in the order they were stored");
    assert_eq!(store.history(other.uuid).await.unwrap(), []);
}

/// The newest 1,000 events of a node are kept, and none that is 90 days older than the newest.
pub async fn history_is_pruned<S: Store>(store: Arc<S>) {
    let other = store.create_node(new_node("other"), vec![event(0)]).await.unwrap();
    let node = store.create_node(new_node("one"), (0..3).map(event).collect()).await.unwrap();
    let times = async || -> Vec<i64> {
        store.history(node.uuid).await.unwrap().iter().map(|event| event.at.0 - at(0).0).collect()
    };
    let day = 24 * 3600 * 1_000_000;
    let node = store.update_node(node.clone(), vec![event(90 * day + 1)], None).await.unwrap();
    assert_eq!(times().await, [1, 2, 90 * day + 1], "the first is more than 90 days older");
    let many: i64 = MAX_EVENTS.try_into().unwrap();
    let more = (0..many).map(|n| event(91 * day + n)).collect();
    let node = store.update_node(node.clone(), more, None).await.unwrap();
    assert_eq!(times().await, (0..many).map(|n| 91 * day + n).collect::<Vec<_>>());
    store.update_node(node.clone(), vec![event(92 * day)], None).await.unwrap();
    let kept = times().await;
    assert_eq!((kept.len(), kept[0], kept[kept.len() - 1]), (MAX_EVENTS, 91 * day + 1, 92 * day));
    assert_eq!(store.history(other.uuid).await.unwrap().len(), 1, "each node has its own");
}

/// Not the state that the write leaves: the event of a transition has the duration of the state that it ends.
pub async fn events_have_the_state_before_the_write<S: Store>(store: Arc<S>) {
    let second = |n: i64| at(n * 1_000_000);
    let mut node = new_node("one");
    node = store.create_node(node, vec![event(1)]).await.unwrap();
    node.enter(ProvisionState::Verifying, None, second(10));
    node = store.update_node(node, vec![event(10_000_000)], None).await.unwrap();
    node.enter(ProvisionState::Manageable, None, second(17));
    store.update_node(node.clone(), vec![event(17_000_000), event(17_900_000)], None).await.unwrap();

    let history = store.history(node.uuid).await.unwrap();
    let stood: Vec<_> = history
        .iter()
        .map(|event| (event.state.unwrap(), event.target_provision_state, event.duration_s))
        .collect();
    let verifying = (ProvisionState::Verifying, Some(ProvisionState::Manageable), Some(7));
    let enrolled = (ProvisionState::Enroll, None, None);
    assert_eq!(stood, [enrolled, enrolled, verifying, verifying]);
}

pub async fn delete_removes_what_belongs_to_the_node<S: Store>(store: Arc<S>) {
    let doomed = store.create_node(new_node("doomed"), vec![event(1)]).await.unwrap();
    let kept = store.create_node(new_node("kept"), vec![event(2)]).await.unwrap();
    let catalogue = Catalogue { steps: vec![], hardware_manager_version: Map::new(), learnt_at: at(0) };
    let (found, source) = (json!({"interfaces": []}), "redfish".to_owned());
    let inventory = Inventory { inventory: found, plugin_data: json!({}), at: at(0), source, ruled: false };
    for (index, node) in [(0, &doomed), (1, &kept)] {
        create(&*store, new_port(node.uuid, index)).await.unwrap();
        store.grant_token(node.uuid, TokenRequest::without_nonce("token", None, at(0))).await.unwrap();
        store.record_heartbeat(node.uuid, "token", beat(1)).await.unwrap();
        store.put_catalogue(node.uuid, StepKind::Clean, catalogue.clone(), None).await.unwrap();
        store.put_inventory(node.uuid, inventory.clone()).await.unwrap();
        store.take_lease(node.uuid, "holder", at(0), at(90)).await.unwrap().unwrap();
    }
    store.delete_node(doomed.uuid, doomed.version, vec![]).await.unwrap();
    assert_not_found(store.node(doomed.uuid).await, Noun::Node, doomed.uuid);
    nothing_belongs_to(&*store, doomed.uuid).await;

    // Nothing comes back with a node of the same UUID, and its values are free again.
    store.create_node(doomed.clone(), vec![]).await.unwrap();
    nothing_belongs_to(&*store, doomed.uuid).await;
    create(&*store, new_port(doomed.uuid, 0)).await.unwrap();

    assert_eq!(store.node(kept.uuid).await.unwrap(), kept);
    assert_eq!(store.history(kept.uuid).await.unwrap().len(), 1);
    assert_eq!(store.resources(ResourceKind::Port, Some(kept.uuid)).await.unwrap().len(), 1);
    assert_eq!(store.contact(kept.uuid).await.unwrap().last_heartbeat_at, Some(at(1)));
    assert_eq!(store.catalogue(kept.uuid, StepKind::Clean).await.unwrap(), Some(catalogue));
    assert_eq!(store.inventory(kept.uuid).await.unwrap(), Some(inventory));
    assert_eq!(store.lease_holder(kept.uuid, at(1)).await.unwrap().as_deref(), Some("holder"));
}

async fn nothing_belongs_to<S: Store>(store: &S, node: Uuid) {
    assert_eq!(store.history(node).await.unwrap(), []);
    assert_eq!(store.resources(ResourceKind::Port, Some(node)).await.unwrap(), []);
    assert_eq!(store.contact(node).await.unwrap(), Contact::default());
    assert_eq!(store.catalogue(node, StepKind::Clean).await.unwrap(), None);
    assert_eq!(store.inventory(node).await.unwrap(), None);
    assert_eq!(store.lease_holder(node, at(1)).await.unwrap(), None);
}

pub async fn nodes_that_are_due<S: Store>(store: Arc<S>) {
    assert_eq!(store.next_due(at(0)).await.unwrap(), None);
    let mut nodes = Vec::new();
    for (name, wake) in [("a", Some(30)), ("b", Some(10)), ("c", None), ("d", Some(20))] {
        let mut node = new_node(name);
        node.next_wake_at = wake.map(at);
        nodes.push(store.create_node(node, vec![]).await.unwrap());
    }
    let [a, b, _, d] = [0, 1, 2, 3].map(|index: usize| nodes[index].uuid);
    assert_eq!(store.next_due(at(9)).await.unwrap(), Some(at(10)));
    assert_eq!(store.next_due(at(10)).await.unwrap(), Some(at(20)), "what is due is not next");
    assert_eq!(store.next_due(at(30)).await.unwrap(), None);
    assert_eq!(store.due(at(9), 9).await.unwrap(), [] as [Uuid; 0]);
    assert_eq!(store.due(at(10), 9).await.unwrap(), [b], "not later than now, so now is due");
    assert_eq!(store.due(at(99), usize::MAX).await.unwrap(), [b, d, a], "earliest first");
    assert_eq!(store.due(at(99), 2).await.unwrap(), [b, d]);
    assert_eq!(store.due(at(99), 0).await.unwrap(), [] as [Uuid; 0]);

    let mut later = nodes[1].clone();
    later.next_wake_at = Some(at(40));
    let later: Node = store.update_node(later, vec![], None).await.unwrap();
    assert_eq!(store.due(at(99), 9).await.unwrap(), [d, a, b]);
    assert_eq!(store.next_due(at(0)).await.unwrap(), Some(at(20)));
    store.delete_node(later.uuid, later.version, vec![]).await.unwrap();
    assert_eq!(store.due(at(99), 9).await.unwrap(), [d, a]);
}

pub async fn the_bell_rings_for_nodes<S: Store>(store: Arc<S>) {
    let mut ears = store.bell().listen();
    let node = enrolled(&*store, "one").await;
    assert_eq!(rung(&mut ears), BTreeSet::from([node.uuid]), "create");
    let newer = store.update_node(node.clone(), vec![], None).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::from([node.uuid]), "update");

    assert_stale(store.update_node(node.clone(), vec![], None).await, node.uuid);
    assert_duplicate(store.create_node(newer.clone(), vec![]).await, Unique::NodeUuid, node.uuid);
    assert_eq!(rung(&mut ears), BTreeSet::new(), "a rejected write changed nothing");

    store.delete_node(newer.uuid, newer.version, vec![]).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::from([node.uuid]), "delete");
}
