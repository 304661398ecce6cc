//! Inventories: kept, bounded, heard.

use super::{assert_not_found, at, enrolled, rung};
use crate::{Store, StoreError, inventory};
use model::Inventory;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

fn found(n: i64, plugin_data: Value) -> Inventory {
    let inventory = json!({"interfaces": [{"mac_address": "52:54:00:00:00:01"}], "cpu": {"count": n}});
    Inventory { inventory, plugin_data, at: at(n), source: "agent".to_owned() }
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
    let nobody = Uuid::new_v4();
    assert_not_found(store.put_inventory(nobody, found(3, json!({}))).await, "Node", nobody);
    assert_eq!(store.inventory(nobody).await.unwrap(), None);
}

pub async fn a_large_one_is_refused<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    let around = serde_json::to_string(&found(1, json!(""))).unwrap().len();
    let full = found(1, json!("x".repeat(inventory::MAX - around)));
    store.put_inventory(node, full.clone()).await.expect("just as much as is kept");
    let larger = found(1, json!("x".repeat(inventory::MAX - around + 1)));
    match store.put_inventory(node, larger).await {
        Err(StoreError::TooLarge { node: told, bytes, most, .. }) => {
            assert_eq!((told, bytes, most), (node, inventory::MAX + 1, inventory::MAX));
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
    let nobody = Uuid::new_v4();
    assert_not_found(store.put_inventory(nobody, found(1, json!({}))).await, "Node", nobody);
    assert_eq!(rung(&mut ears), BTreeSet::new(), "what was refused changed nothing");
}
