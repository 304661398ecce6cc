//! A disk that a node is known to have is in the report of each erase, or the erase fails.

use crate::world::World;
use conductor::Settings;
use model::disks::KnownDisk;
use model::storage::{self, EXPECTED};
use model::{Node, ProvisionState, Timestamp, Verb};
use serde_json::json;
use store::prelude::*;

fn disk(serial: &str) -> KnownDisk {
    KnownDisk { serial: Some(serial.into()), wwn: None, model: Some("M".into()) }
}

/// Change the stored node, again when another writer was first.
async fn store(world: &World, change: impl Fn(&mut Node)) {
    loop {
        let mut node = world.store.node(world.node).await.unwrap();
        change(&mut node);
        if world.store.update_node(node, Vec::new(), None).await.is_ok() {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_pulled_since_the_last_look_fails_the_cleaning_until_it_is_retired() {
    let world = World::new().await;
    store(&world, |node| node.disks.known = vec![disk("S1"), disk("S2")]).await;
    let _conductor = world.provide(Settings::default()).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    let error = node.last_error.unwrap();
    assert!(error.contains("disk S2 is missing") && !error.contains("S1"), "{error}");
    assert_eq!(world.store.newest_certificate(world.node).await.unwrap(), None);
    assert_eq!(node.disks.known.len(), 2, "what is missing stays known");

    let now = Timestamp(1_800_000_000_000_000);
    store(&world, |node| drop(storage::retire(node, "S2", "returned to the vendor", now).unwrap())).await;
    world.verb(Verb::Provide).await;
    let node = world.until_state(ProvisionState::Available).await;
    assert_eq!((node.disks.known.len(), node.disks.retired.len()), (1, 0));
    let certificates = world.store.certificates(world.node).await.unwrap();
    let named: Vec<bool> =
        certificates.iter().map(|one| one.file.contains("returned to the vendor")).collect();
    assert_eq!(named.iter().filter(|named| **named).count(), 1, "by the next certificate alone: {named:?}");
    assert_eq!(certificates.len(), 2, "of the metadata and of the data");
}

#[tokio::test(start_paused = true)]
async fn an_expected_disk_must_be_reported_too() {
    let world = World::new().await;
    store(&world, |node| drop(node.properties.insert(EXPECTED.into(), json!(["S1", "S7"])))).await;
    let _conductor = world.provide(Settings::default()).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    assert!(node.last_error.unwrap().contains("disk S7 is missing"));
    store(&world, |node| drop(node.properties.insert(EXPECTED.into(), json!("S1")))).await;
    world.verb(Verb::Provide).await;
    world.until("tried again", |node| node.provision_state != ProvisionState::CleanFail).await;
    let node = world.until_state(ProvisionState::CleanFail).await;
    assert!(node.last_error.unwrap().contains("properties.expected_disks is not a list"));
    store(&world, |node| drop(node.properties.insert(EXPECTED.into(), json!(["S1"])))).await;
    world.verb(Verb::Provide).await;
    let node = world.until_state(ProvisionState::Available).await;
    assert_eq!(
        node.disks.known,
        [KnownDisk { model: None, ..disk("S1") }],
        "the erase remembers what it saw"
    );
}
