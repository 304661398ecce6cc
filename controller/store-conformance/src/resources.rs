//! Resources: names, keys, versions, order, and their relation to nodes.

use super::samples::{
    assert_duplicate, assert_not_found, assert_stale, at, create, delete, enrolled, event, new_port, object,
    rung, update,
};
use model::{Node, Resource, ResourceKind};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{Noun, ResourceWrite, Store, StoreError, Unique};
use uuid::Uuid;

fn resource(kind: ResourceKind, name: &str, created: i64) -> Resource {
    Resource {
        name: Some(name.to_owned()),
        key: Some(format!("key of {name}")),
        fields: object(json!({"extra": {"'; DROP TABLE resource; --": [null, 1.5]}, "boot_index": 0})),
        ..Resource::new(kind, Uuid::new_v4(), at(created))
    }
}

pub async fn resources_come_and_go<S: Store>(store: Arc<S>) {
    for kind in ResourceKind::ALL {
        assert_eq!(store.resources(kind, None).await.unwrap(), []);
        let mut made = Vec::new();
        for (name, created) in [("c", 3), ("a", 1), ("b", 1)] {
            let mut new = resource(kind, name, created);
            let stored = create(&*store, new.clone()).await.unwrap();
            new.version = 1;
            assert_eq!(stored, new);
            for ident in [name.to_owned(), new.uuid.to_string(), new.uuid.to_string().to_uppercase()] {
                assert_eq!(store.resource(kind, &ident).await.unwrap(), new, "{ident}");
            }
            assert_eq!(store.resource_by_key(kind, &format!("key of {name}")).await.unwrap(), new);
            made.push(new);
        }
        made.sort_by_key(|resource| (resource.created_at, resource.uuid));
        assert_eq!(store.resources(kind, None).await.unwrap(), made, "each kind is a room of its own");

        let mut changed = Resource {
            name: None,
            key: None,
            fields: object(json!({"mode": "802.3ad"})),
            updated_at: Some(at(9)),
            ..made[0].clone()
        };
        let (old, old_key) = (made[0].name.clone().unwrap(), made[0].key.clone().unwrap());
        let stored = update(&*store, changed.clone()).await.unwrap();
        changed.version = 2;
        assert_eq!(stored, changed);
        assert_not_found(store.resource(kind, &old).await, kind, old);
        assert_not_found(store.resource_by_key(kind, &old_key).await, kind, old_key);
        assert_eq!(delete(&*store, &changed).await.unwrap(), changed);
        assert_not_found(delete(&*store, &changed).await, kind, changed.uuid);
        assert_not_found(update(&*store, changed.clone()).await, kind, changed.uuid);
        assert_eq!(store.resources(kind, None).await.unwrap(), made[1..]);
    }
}

pub async fn unique_values<S: Store>(store: Arc<S>) {
    let kind = ResourceKind::Portgroup;
    let first = create(&*store, resource(kind, "a", 1)).await.unwrap();
    let second = create(&*store, resource(kind, "b", 2)).await.unwrap();
    assert_duplicate(create(&*store, first.clone()).await, Unique::ResourceUuid, first.uuid);
    assert_duplicate(create(&*store, resource(kind, "a", 3)).await, Unique::ResourceName, "a");
    let renamed = Resource { name: Some("a".to_owned()), ..second.clone() };
    assert_duplicate(update(&*store, renamed).await, Unique::ResourceName, "a");
    let same_key = Resource { key: first.key.clone(), ..second.clone() };
    assert_duplicate(update(&*store, same_key).await, Unique::ResourceKey, "key of a");
    let stray = Resource { node: Some(Uuid::nil()), ..second.clone() };
    assert_not_found(update(&*store, stray).await, Noun::Node, Uuid::nil());
    assert_eq!(store.resources(kind, None).await.unwrap(), [first.clone(), second], "nothing was stored");
    for kind in [ResourceKind::Portgroup, ResourceKind::Chassis] {
        for _ in 0..2 {
            let nameless = Resource { name: None, key: None, ..resource(kind, "", 4) };
            create(&*store, nameless).await.expect("no name and no key are shared by as many as like");
        }
    }
    create(&*store, Resource { kind: ResourceKind::Runbook, ..first.clone() }).await.expect("another kind");
    update(&*store, first.clone()).await.expect("it may keep its own name and key");
}

pub async fn a_stale_resource_write_changes_nothing<S: Store>(store: Arc<S>) {
    let read = create(&*store, resource(ResourceKind::Chassis, "a", 1)).await.unwrap();
    let stored = update(&*store, read.clone()).await.unwrap();
    for version in [0, 1, 3, u64::MAX] {
        let late = Resource { version, name: None, ..read.clone() };
        assert_stale(update(&*store, late.clone()).await, read.uuid);
        assert_stale(delete(&*store, &late).await, read.uuid);
    }
    assert_eq!(store.resources(ResourceKind::Chassis, None).await.unwrap(), [stored]);
}

pub async fn of_two_of_one_name_one_wins<S: Store + 'static>(store: Arc<S>) {
    for round in 0..10 {
        let once = || {
            let (store, new) = (store.clone(), resource(ResourceKind::Allocation, &round.to_string(), round));
            tokio::spawn(async move { create(&*store, new).await })
        };
        let (a, b) = (once(), once());
        match (a.await.unwrap(), b.await.unwrap()) {
            (Ok(_), Err(StoreError::Duplicate { .. })) | (Err(StoreError::Duplicate { .. }), Ok(_)) => {}
            other => panic!("exactly one of two gets the name, got {other:?}"),
        }
    }
}

async fn of_node<S: Store>(store: &S, kind: ResourceKind, node: &Node, name: &str) -> Resource {
    create(store, Resource { node: Some(node.uuid), ..resource(kind, name, 1) }).await.unwrap()
}

pub async fn a_node_is_deleted_with_its_resources<S: Store>(store: Arc<S>) {
    let (node, other) = (enrolled(&*store, "a").await, enrolled(&*store, "b").await);
    let kind = ResourceKind::VolumeTarget;
    let mine = of_node(&*store, kind, &node, "mine").await;
    let its = of_node(&*store, kind, &other, "its").await;
    let free = create(&*store, resource(kind, "free", 5)).await.unwrap();
    assert_eq!(store.resources(kind, Some(node.uuid)).await.unwrap(), [mine]);
    store.delete_node(node.uuid, node.version, vec![]).await.unwrap();
    assert_eq!(store.resources(kind, Some(node.uuid)).await.unwrap(), []);
    assert_eq!(store.resources(kind, None).await.unwrap(), [its, free]);
}

pub async fn a_node_is_written_with_it_or_not_at_all<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "a").await;
    let taken = create(&*store, resource(ResourceKind::Allocation, "taken", 1)).await.unwrap();
    let wish = resource(ResourceKind::Allocation, "wish", 2);
    let with = |version: u64| {
        let changed = Node { version, instance_uuid: Some(wish.uuid), ..node.clone() };
        Some((changed, vec![event(7)]))
    };
    let given = Resource { node: Some(node.uuid), ..wish.clone() };
    let late =
        store.write_resource(ResourceWrite::Create(given.clone()), with(node.version + 1), vec![]).await;
    assert_stale(late, node.uuid);
    let same = Resource { name: taken.name.clone(), ..given.clone() };
    let refused = store.write_resource(ResourceWrite::Create(same), with(node.version), vec![]).await;
    assert_duplicate(refused, Unique::ResourceName, "taken");
    assert_eq!(store.node(node.uuid).await.unwrap(), node, "nor was the node written");
    assert_eq!(store.history(node.uuid).await.unwrap(), []);
    assert_eq!(store.resources(ResourceKind::Allocation, None).await.unwrap(), [taken]);

    let made = store.write_resource(ResourceWrite::Create(given), with(node.version), vec![]).await.unwrap();
    let written = store.node(node.uuid).await.unwrap();
    assert_eq!((written.version, written.instance_uuid), (node.version + 1, Some(made.uuid)));
    assert_eq!(store.history(node.uuid).await.unwrap().len(), 1);
    assert_eq!(store.resource(ResourceKind::Allocation, "wish").await.unwrap(), made);
}

pub async fn an_allocation_ends_with_the_instance<S: Store>(store: Arc<S>) {
    let mut node = enrolled(&*store, "a").await;
    let wish = Resource { node: Some(node.uuid), ..resource(ResourceKind::Allocation, "wish", 2) };
    node.instance_uuid = Some(wish.uuid);
    let volume = of_node(&*store, ResourceKind::VolumeTarget, &node, "stays").await;
    store
        .write_resource(ResourceWrite::Create(wish.clone()), Some((node.clone(), vec![])), vec![])
        .await
        .unwrap();
    node = store.update_node(store.node(node.uuid).await.unwrap(), vec![], None).await.unwrap();
    assert!(store.resource(ResourceKind::Allocation, "wish").await.is_ok(), "the instance is still there");
    node.instance_uuid = None;
    store.update_node(node.clone(), vec![], None).await.unwrap();
    assert_not_found(
        store.resource(ResourceKind::Allocation, "wish").await,
        ResourceKind::Allocation,
        "wish",
    );
    assert_eq!(store.resources(ResourceKind::VolumeTarget, Some(node.uuid)).await.unwrap(), [volume]);
}

pub async fn resources_ring_only_for_the_node<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "a").await;
    let mut ears = store.bell().listen();
    let made = of_node(&*store, ResourceKind::Portgroup, &node, "bond").await;
    let made = update(&*store, made).await.unwrap();
    delete(&*store, &made).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::new());
    let wish = resource(ResourceKind::Allocation, "wish", 1);
    store.write_resource(ResourceWrite::Create(wish), Some((node.clone(), vec![])), vec![]).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::from([node.uuid]));
}

pub async fn the_bell_rings_for_ports<S: Store>(store: Arc<S>) {
    let (one, two) = (enrolled(&*store, "one").await, enrolled(&*store, "two").await.uuid);
    let mut ears = store.bell().listen();
    let mut port = create(&*store, new_port(one.uuid, 1)).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::from([one.uuid]), "create");
    assert_eq!(store.node(one.uuid).await.unwrap(), one, "a port does not touch its node's version");
    port.node = Some(two);
    let port = update(&*store, port).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::from([one.uuid, two]), "a port that moves concerns both nodes");
    assert_eq!(store.resources(ResourceKind::Port, Some(one.uuid)).await.unwrap(), []);
    assert_eq!(store.resources(ResourceKind::Port, Some(two)).await.unwrap(), std::slice::from_ref(&port));
    assert_duplicate(create(&*store, new_port(one.uuid, 1)).await, Unique::ResourceKey, port.address());
    assert_eq!(rung(&mut ears), BTreeSet::new(), "what was refused changed nothing");
    delete(&*store, &port).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::from([two]), "delete");
}
