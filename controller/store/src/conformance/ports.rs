//! Ports.

use super::samples::{assert_duplicate, assert_not_found, at, enrolled, new_port, rung};
use crate::{Noun, Store, StoreError, Unique};
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

const MAC: &str = "52:54:00:aa:bb:0c";

pub async fn ports_come_and_go<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let port = new_port(node.uuid, MAC);
    assert_eq!(store.create_port(port.clone()).await.unwrap(), port);
    assert_eq!(store.port(port.uuid).await.unwrap(), port);
    assert_eq!(store.port_by_address(MAC).await.unwrap(), port);
    assert_not_found(store.port_by_address("52:54:00:aa:bb:0d").await, Noun::Port, "52:54:00:aa:bb:0d");

    let mut changed = port.clone();
    changed.address = "52:54:00:aa:bb:0e".to_owned();
    changed.pxe_enabled = false;
    changed.updated_at = Some(at(1));
    assert_eq!(store.update_port(changed.clone()).await.unwrap(), changed);
    assert_eq!(store.port(port.uuid).await.unwrap(), changed);
    assert_not_found(store.port_by_address(MAC).await, Noun::Port, MAC);
    assert_eq!(store.node(node.uuid).await.unwrap(), node, "a port does not touch its node's version");

    let other = enrolled(&*store, "other").await;
    changed.node_uuid = other.uuid;
    store.update_port(changed.clone()).await.unwrap();
    assert_eq!(store.ports(Some(node.uuid)).await.unwrap(), []);
    assert_eq!(store.ports(Some(other.uuid)).await.unwrap(), [changed.clone()]);

    store.delete_port(port.uuid).await.unwrap();
    assert_eq!(store.ports(None).await.unwrap(), []);
    assert_not_found(store.port(port.uuid).await, Noun::Port, port.uuid);
    assert_not_found(store.delete_port(port.uuid).await, Noun::Port, port.uuid);
    assert_not_found(store.update_port(changed).await, Noun::Port, port.uuid);
}

pub async fn unique_addresses<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let first = store.create_port(new_port(node.uuid, MAC)).await.unwrap();
    let second = store.create_port(new_port(node.uuid, "52:54:00:aa:bb:0d")).await.unwrap();

    assert_duplicate(store.create_port(new_port(node.uuid, MAC)).await, Unique::PortAddress, MAC);
    let mut same_uuid = new_port(node.uuid, "52:54:00:aa:bb:0e");
    same_uuid.uuid = first.uuid;
    assert_duplicate(store.create_port(same_uuid).await, Unique::PortUuid, first.uuid);
    let mut clash = second.clone();
    clash.address = MAC.to_owned();
    assert_duplicate(store.update_port(clash).await, Unique::PortAddress, MAC);
    let mut astray = second.clone();
    astray.node_uuid = Uuid::new_v4();
    assert_not_found(store.update_port(astray.clone()).await, Noun::Node, astray.node_uuid);

    assert_eq!(store.port(first.uuid).await.unwrap(), first);
    assert_eq!(store.port(second.uuid).await.unwrap(), second);
    assert_eq!(store.ports(None).await.unwrap().len(), 2);
    store.update_port(first).await.expect("a port may keep its own address");
}

pub async fn of_two_ports_with_one_address_one_wins<S: Store + 'static>(store: Arc<S>) {
    let nodes = [enrolled(&*store, "one").await.uuid, enrolled(&*store, "two").await.uuid];
    for round in 0..10 {
        let address = format!("52:54:00:aa:cc:0{round}");
        let create = |node| {
            let (store, port) = (store.clone(), new_port(node, &address));
            tokio::spawn(async move { store.create_port(port).await })
        };
        let [a, b] = nodes.map(create);
        match (a.await.unwrap(), b.await.unwrap()) {
            (Ok(won), Err(StoreError::Duplicate { .. })) | (Err(StoreError::Duplicate { .. }), Ok(won)) => {
                assert_eq!(store.port_by_address(&address).await.unwrap(), won);
            }
            other => panic!("exactly one of two ports with one address is stored, got {other:?}"),
        }
    }
    assert_eq!(store.ports(None).await.unwrap().len(), 10);
}

pub async fn the_bell_rings_for_ports<S: Store>(store: Arc<S>) {
    let (one, two) = (enrolled(&*store, "one").await.uuid, enrolled(&*store, "two").await.uuid);
    let mut ears = store.bell().listen();
    let mut port = store.create_port(new_port(one, MAC)).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::from([one]), "create");
    port.node_uuid = two;
    store.update_port(port.clone()).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::from([one, two]), "a port that moves concerns both nodes");
    assert_duplicate(store.create_port(new_port(one, MAC)).await, Unique::PortAddress, MAC);
    assert_eq!(rung(&mut ears), BTreeSet::new(), "what was refused changed nothing");
    store.delete_port(port.uuid).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::from([two]), "delete");
}
