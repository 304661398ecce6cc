//! Inventories: kept, bounded, heard.

use super::samples::{assert_not_found, assert_stale, at, create, enrolled, event, new_port, rung, update};
use model::{Inventory, Node, Resource, ResourceKind};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{Inspected, Lease, Noun, Store, StoreError, inventory};
use uuid::Uuid;

fn found(n: i64, plugin_data: Value) -> Inventory {
    let inventory = json!({"interfaces": [{"mac_address": "52:54:00:00:00:01"}], "cpu": {"count": n}});
    Inventory { inventory, plugin_data, at: at(n), source: "agent".to_owned(), ruled: false }
}

pub async fn the_last_inventory_is_kept<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let other = enrolled(&*store, "other").await;
    assert_eq!(store.inventory(node.uuid).await.unwrap(), None);
    for n in [1, 2] {
        let kept = found(n, json!({"ünïcode \"\0": [null, 0.5]}));
        store.put_inventory(node.uuid, kept.clone()).await.unwrap();
        assert_eq!(store.inventory(node.uuid).await.unwrap(), Some(kept));
    }
    assert_eq!(store.inventory(other.uuid).await.unwrap(), None);
    assert_eq!(store.node(node.uuid).await.unwrap(), node, "an inventory is not the node's row");
    let missing = Uuid::new_v4();
    assert_not_found(store.put_inventory(missing, found(3, json!({}))).await, Noun::Node, missing);
    assert_eq!(store.inventory(missing).await.unwrap(), None);
}

pub async fn a_large_one_is_refused<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    let around = serde_json::to_string(&found(1, json!(""))).unwrap().len();
    let full = found(1, json!("x".repeat(inventory::MAX - around)));
    store.put_inventory(node, full.clone()).await.expect("just as much as is kept");
    let larger = found(1, json!("x".repeat(inventory::MAX - around + 1)));
    match store.put_inventory(node, larger).await {
        Err(StoreError::TooLarge { node: of, bytes, most, .. }) => {
            assert_eq!((of, bytes, most), (node, inventory::MAX + 1, inventory::MAX));
        }
        other => panic!("expected the inventory to be too large, got {other:?}"),
    }
    assert_eq!(store.inventory(node).await.unwrap(), Some(full), "the one before stays");
}

pub async fn the_bell_rings_for_inventories<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    let mut ears = store.bell().listen();
    store.put_inventory(node, found(1, json!({}))).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::from([node]));
    let missing = Uuid::new_v4();
    assert_not_found(store.put_inventory(missing, found(1, json!({}))).await, Noun::Node, missing);
    assert_eq!(rung(&mut ears), BTreeSet::new(), "what was refused changed nothing");
}

pub async fn an_inspection_is_written_whole<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let read = create(&*store, new_port(node.uuid, 1)).await.unwrap();
    let other = create(&*store, new_port(node.uuid, 2)).await.unwrap();
    let mut new = Resource { updated_at: Some(at(1)), ..read.with_pxe(false) };
    let mut changed = node.clone();
    changed.resource_class = Some("big".to_owned());
    let inventory = Inventory { ruled: true, ..found(1, json!({"by": "rule"})) };
    let ports = vec![new.clone()];
    let (mut made, elsewhere) = (new_port(node.uuid, 3), enrolled(&*store, "two").await.uuid);
    let theirs = create(&*store, new_port(elsewhere, 4)).await.unwrap();
    let new_ports = vec![made.clone(), new_port(node.uuid, 2), new_port(node.uuid, 4)];
    let inspected = Inspected { inventory: inventory.clone(), ports, new_ports };
    let mut ears = store.bell().listen();
    let written = store.update_inspected(changed.clone(), vec![event(1)], None, inspected).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::from([node.uuid]));
    assert_eq!(written, Node { version: node.version + 1, ..changed });
    assert_eq!(store.node(node.uuid).await.unwrap(), written);
    assert_eq!(store.history(node.uuid).await.unwrap().len(), 1);
    assert_eq!(store.inventory(node.uuid).await.unwrap(), Some(inventory));
    (new.version, made.version) = (2, 1);
    let mut ports = store.resources(ResourceKind::Port, None).await.unwrap();
    ports.sort_by_key(|port| port.key.clone());
    assert_eq!(ports, [new, other, made, theirs], "a port that has an address keeps it");
}

pub async fn half_an_inspection_is_never_written<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let lease = store.take_lease(node.uuid, "a", at(0), at(9)).await.unwrap().unwrap();
    let lost = Lease { epoch: lease.epoch + 1, ..lease };
    let first = create(&*store, new_port(node.uuid, 1)).await.unwrap();
    let second = create(&*store, new_port(node.uuid, 2)).await.unwrap();
    let old = Node { version: node.version + 1, ..node.clone() };
    let gone = new_port(node.uuid, 3);
    // A user wrote it since it was read.
    let before = second.clone();
    let second = update(&*store, second).await.unwrap();
    let change = |read: &Resource| read.clone().with_pxe(false);
    for (node, lease, port) in [
        (&old, Some(lease), &second),
        (&node, Some(lost), &second),
        (&node, None, &gone),
        (&node, None, &before),
    ] {
        let ports = vec![change(&first), change(port)];
        let new_ports = vec![new_port(node.uuid, 9)];
        let inspected = Inspected { inventory: found(1, json!({})), ports, new_ports };
        let changed = Node { last_error: Some("changed".to_owned()), ..node.clone() };
        assert_stale(store.update_inspected(changed, vec![event(1)], lease, inspected).await, node.uuid);
    }
    let large = Inspected {
        inventory: found(1, json!("x".repeat(inventory::MAX))),
        ports: vec![change(&first)],
        new_ports: vec![new_port(node.uuid, 9)],
    };
    let refused = store.update_inspected(node.clone(), vec![event(1)], None, large).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
    assert_eq!(store.node(node.uuid).await.unwrap(), node);
    assert_eq!(store.history(node.uuid).await.unwrap(), []);
    assert_eq!(store.inventory(node.uuid).await.unwrap(), None);
    let mut ports = store.resources(ResourceKind::Port, None).await.unwrap();
    ports.sort_by_key(|port| port.key.clone());
    assert_eq!(ports, [first, second]);
}
