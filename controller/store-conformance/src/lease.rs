//! Leases and their fencing epochs.

use super::samples::{assert_stale, at, enrolled, event, rung};
use model::{Catalogue, Cursor, Inventory, Run, RunKind, StepKind};
use serde_json::{Map, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{Lease, Store, TokenRequest};

pub async fn one_holder_at_a_time<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    assert_eq!(store.lease_holder(node, at(0)).await.unwrap(), None);
    let first = store.take_lease(node, "a", at(0), at(10)).await.unwrap().unwrap();
    assert_eq!(first.node, node);
    assert_eq!(store.lease_holder(node, at(9)).await.unwrap().as_deref(), Some("a"));
    assert_eq!(store.take_lease(node, "b", at(9), at(99)).await.unwrap(), None, "held until 10");
    assert_eq!(store.lease_holder(node, at(9)).await.unwrap().as_deref(), Some("a"));
    assert_eq!(store.lease_holder(node, at(10)).await.unwrap(), None, "expired at 10");

    let again = store.take_lease(node, "a", at(5), at(20)).await.unwrap().unwrap();
    assert!(again.epoch > first.epoch, "the holder may take it again, and the epoch grows");
    assert_eq!(store.take_lease(node, "b", at(19), at(99)).await.unwrap(), None);
    let taken = store.take_lease(node, "b", at(20), at(30)).await.unwrap().unwrap();
    assert!(taken.epoch > again.epoch);
    assert_eq!(store.lease_holder(node, at(25)).await.unwrap().as_deref(), Some("b"));
}

pub async fn of_two_conductors_at_once_one_gets_the_lease<S: Store + 'static>(store: Arc<S>) {
    for round in 0..10 {
        let node = enrolled(&*store, &format!("n{round}")).await.uuid;
        let take = |holder: &'static str| {
            let store = store.clone();
            tokio::spawn(async move { store.take_lease(node, holder, at(0), at(10)).await.unwrap() })
        };
        let (a, b) = (take("a"), take("b"));
        let winner = match (a.await.unwrap(), b.await.unwrap()) {
            (Some(_), None) => "a",
            (None, Some(_)) => "b",
            other => panic!("exactly one of two conductors gets the lease, got {other:?}"),
        };
        assert_eq!(store.lease_holder(node, at(1)).await.unwrap().as_deref(), Some(winner));
    }
}

pub async fn a_lease_taken_over_fences_the_old_holder<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let uuid = node.uuid;
    let old = store.take_lease(uuid, "a", at(0), at(10)).await.unwrap().unwrap();
    let node = store.update_node(node, vec![], Some(old)).await.unwrap();
    let new = store.take_lease(uuid, "b", at(10), at(20)).await.unwrap().unwrap();

    let mut late = node.clone();
    late.last_error = Some("written by the dead".to_owned());
    assert_stale(store.update_node(late, vec![event(1)], Some(old)).await, uuid);
    assert_eq!(store.node(uuid).await.unwrap(), node);
    assert_eq!(store.history(uuid).await.unwrap(), []);

    let node = store.update_node(node, vec![], Some(new)).await.unwrap();
    // Users hold no lease; the version alone guards their writes.
    let node = store.update_node(node, vec![], None).await.unwrap();
    store.release_lease(new).await.unwrap();
    assert_stale(store.update_node(node.clone(), vec![], Some(new)).await, uuid);
    assert_eq!(store.node(uuid).await.unwrap(), node);
}

/// What is stored in addition to the node's row is fenced, too: the agent may be one that the new holder has booted.
pub async fn no_agent_is_forgotten_under_a_lost_lease<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    let old = store.take_lease(node, "a", at(0), at(10)).await.unwrap().unwrap();
    let new = store.take_lease(node, "b", at(10), at(20)).await.unwrap().unwrap();
    store.grant_token(node, TokenRequest::without_nonce("token", None, at(11))).await.unwrap();
    let steps = Catalogue { steps: vec![], hardware_manager_version: Map::new(), learnt_at: at(12) };
    assert_stale(store.forget_agent(node, None, Some(old)).await, node);
    assert_stale(store.put_catalogue(node, StepKind::Clean, steps.clone(), Some(old)).await, node);
    assert_eq!(store.contact(node).await.unwrap().token.as_deref(), Some("token"));
    assert_eq!(store.catalogue(node, StepKind::Clean).await.unwrap(), None);

    store.put_catalogue(node, StepKind::Clean, steps.clone(), Some(new)).await.unwrap();
    store.forget_agent(node, None, Some(new)).await.unwrap();
    assert_eq!(store.catalogue(node, StepKind::Clean).await.unwrap(), Some(steps));
    assert_eq!(store.contact(node).await.unwrap().token, None);
}

pub async fn renewing_and_giving_back<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    let old = store.take_lease(node, "a", at(0), at(10)).await.unwrap().unwrap();
    assert!(store.renew_lease(old, at(20)).await.unwrap());
    assert_eq!(store.take_lease(node, "b", at(19), at(99)).await.unwrap(), None, "it was renewed");
    let new = store.take_lease(node, "b", at(20), at(30)).await.unwrap().unwrap();

    assert!(!store.renew_lease(old, at(99)).await.unwrap(), "it is lost");
    store.release_lease(old).await.expect("a lost lease is given back already");
    assert_eq!(store.lease_holder(node, at(29)).await.unwrap().as_deref(), Some("b"));
    assert_eq!(store.lease_holder(node, at(30)).await.unwrap(), None, "the lost lease renewed nothing");
    let other = enrolled(&*store, "two").await.uuid;
    store.take_lease(other, "a", at(20), at(30)).await.unwrap().unwrap();
    assert_eq!(store.leased_by("b").await.unwrap(), [node]);
    assert_eq!(store.leased_by("a").await.unwrap(), [other]);

    store.release_lease(new).await.unwrap();
    assert_eq!(store.lease_holder(node, at(21)).await.unwrap(), None);
    assert!(store.leased_by("b").await.unwrap().is_empty());
    assert!(!store.renew_lease(new, at(99)).await.unwrap(), "it was given back");
    store.take_lease(node, "a", at(21), at(30)).await.unwrap().expect("it is free");
}

pub async fn an_epoch_is_never_given_twice<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let mut last = 0;
    for _ in 0..3 {
        let lease = store.take_lease(node.uuid, "a", at(0), at(10)).await.unwrap().unwrap();
        assert!(lease.epoch > last, "{} after {last}", lease.epoch);
        last = lease.epoch;
        store.release_lease(lease).await.unwrap();
    }
    // Also not for another node of the same UUID: the holder of the first may still be alive.
    store.delete_node(node.uuid, node.version, vec![]).await.unwrap();
    let node = store.create_node(node, vec![]).await.unwrap();
    let lease = store.take_lease(node.uuid, "b", at(0), at(10)).await.unwrap().unwrap();
    assert!(lease.epoch > last, "{} after {last}", lease.epoch);
}

pub async fn a_lease_of_another_node_does_not_count<S: Store>(store: Arc<S>) {
    let one = enrolled(&*store, "one").await;
    let two = enrolled(&*store, "two").await;
    let lease = store.take_lease(one.uuid, "a", at(0), at(10)).await.unwrap().unwrap();
    assert_stale(store.update_node(two.clone(), vec![], Some(lease)).await, two.uuid);
    let forged = Lease { node: two.uuid, epoch: lease.epoch };
    assert_stale(store.update_node(two.clone(), vec![], Some(forged)).await, two.uuid);
    assert!(!store.renew_lease(forged, at(99)).await.unwrap());
    store.release_lease(forged).await.unwrap();
    assert_eq!(store.lease_holder(one.uuid, at(1)).await.unwrap().as_deref(), Some("a"));
}

pub async fn leases_do_not_ring<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    let mut ears = store.bell().listen();
    let lease = store.take_lease(node, "a", at(0), at(10)).await.unwrap().unwrap();
    store.renew_lease(lease, at(20)).await.unwrap();
    store.release_lease(lease).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::new(), "a pass takes a lease, which must not start another pass");
}

pub async fn a_release_is_heard_by_those_who_wait<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let mut waiting = store.bell().listen_for_locks();
    let lease = store.take_lease(node.uuid, "a", at(0), at(10)).await.unwrap().unwrap();
    store.renew_lease(lease, at(20)).await.unwrap();
    assert_eq!(rung(&mut waiting), BTreeSet::new(), "it is locked");
    store.release_lease(lease).await.unwrap();
    assert_eq!(rung(&mut waiting), BTreeSet::from([node.uuid]), "released");
    store.update_node(node.clone(), vec![], None).await.unwrap();
    assert_eq!(rung(&mut waiting), BTreeSet::from([node.uuid]), "changed");
}

pub async fn all_instants_of_waiting_move_with_the_clock<S: Store>(store: Arc<S>) {
    let mut waiting = enrolled(&*store, "waiting").await;
    waiting.next_wake_at = Some(at(10));
    waiting.run = Some(Run { cursor: Cursor::AwaitAgent, ..Run::new(RunKind::AutomatedClean, at(0)) });
    let waiting = store.update_node(waiting, vec![], None).await.unwrap();
    let mut resting = enrolled(&*store, "resting").await;
    (resting.next_wake_at, resting.wait, resting.run) = (None, None, None);
    let resting = store.update_node(resting, vec![], None).await.unwrap();
    store.grant_token(waiting.uuid, TokenRequest::without_nonce("token", None, at(3))).await.unwrap();
    store.take_lease(resting.uuid, "a", at(0), at(10)).await.unwrap().unwrap();

    let mut inspected = enrolled(&*store, "inspected").await;
    inspected.run = Some(Run { cursor: Cursor::AwaitAgent, ..Run::new(RunKind::Inspect, at(5)) });
    let inspected = store.update_node(inspected, vec![], None).await.unwrap();
    let (inventory, plugin_data) = (json!({"cpu": 1.5}), json!({}));
    let received = Inventory { inventory, plugin_data, at: at(6), source: "agent".to_owned(), ruled: false };
    for node in [inspected.uuid, resting.uuid] {
        store.put_inventory(node, received.clone()).await.unwrap();
    }

    store.shift_clock(100).await.unwrap();
    assert_eq!(store.node(inspected.uuid).await.unwrap().run.unwrap().started_at, at(105));
    let moved = Inventory { at: at(106), ..received.clone() };
    assert_eq!(store.inventory(inspected.uuid).await.unwrap(), Some(moved), "it is still newer than its run");
    assert_eq!(store.inventory(resting.uuid).await.unwrap(), Some(received));
    let moved = store.node(waiting.uuid).await.unwrap();
    assert_eq!((moved.next_wake_at, moved.version), (Some(at(110)), waiting.version + 1));
    assert_eq!(moved.created_at, waiting.created_at, "what happened stays");
    assert_stale(store.update_node(waiting, vec![], None).await, moved.uuid);
    assert_eq!(store.node(resting.uuid).await.unwrap(), resting);
    assert_eq!(store.contact(moved.uuid).await.unwrap().token_at, Some(at(103)));
    assert!(store.due(at(109), 9).await.unwrap().is_empty());
    assert_eq!(store.due(at(110), 9).await.unwrap(), [moved.uuid]);
    assert_eq!(store.lease_holder(resting.uuid, at(109)).await.unwrap().as_deref(), Some("a"));
    assert_eq!(store.lease_holder(resting.uuid, at(110)).await.unwrap(), None);
    store.shift_clock(-100).await.unwrap();
    assert_eq!(store.node(moved.uuid).await.unwrap().next_wake_at, Some(at(10)));
}
