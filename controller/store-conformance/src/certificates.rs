//! Certificates: stored with the write that they belong to or not at all, numbered without gaps, and never deleted.

use super::samples::{assert_not_found, assert_stale, at, certificate, enrolled, event, rung};
use certificate::Log;
use model::Node;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{Lease, Noun, Store};
use uuid::Uuid;

pub async fn one_comes_with_the_write<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let other = enrolled(&*store, "other").await;
    assert_eq!(store.newest_certificate(node.uuid).await.unwrap(), None);
    let mut ears = store.bell().listen();
    let first = certificate(node.uuid, 1);
    let mut changed = node.clone();
    changed.last_error = Some("changed".to_owned());
    let written = store.certify(changed.clone(), vec![event(1)], None, first.clone()).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::from([node.uuid]));
    assert_eq!(written, Node { version: node.version + 1, ..changed });
    assert_eq!(store.node(node.uuid).await.unwrap(), written);
    assert_eq!(store.history(node.uuid).await.unwrap().len(), 1);
    let second = certificate(node.uuid, 2);
    store.certify(written, vec![], None, second.clone()).await.unwrap();
    assert_eq!(store.certificates(node.uuid).await.unwrap(), [first.clone(), second.clone()]);
    assert_eq!(store.newest_certificate(node.uuid).await.unwrap(), Some(second));
    assert_eq!(store.certificate(&first.id).await.unwrap(), first);
    assert_eq!(store.certificates(other.uuid).await.unwrap(), []);
    assert_not_found(store.certificate("%").await, Noun::Certificate, "%");
}

pub async fn a_stale_certificate_changes_nothing<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let other = enrolled(&*store, "other").await;
    let lease = store.take_lease(node.uuid, "a", at(0), at(9)).await.unwrap().unwrap();
    let lost = Lease { epoch: lease.epoch + 1, ..lease };
    let old = Node { version: node.version + 1, ..node.clone() };
    for (node, lease, certificate) in [
        (&node, None, certificate(node.uuid, 2)),
        (&node, None, certificate(node.uuid, 0)),
        (&node, None, certificate(other.uuid, 1)),
        (&node, Some(lost), certificate(node.uuid, 1)),
        (&old, None, certificate(node.uuid, 1)),
    ] {
        let written = store.certify(node.clone(), vec![event(1)], lease, certificate).await;
        assert_stale(written, node.uuid);
    }
    let missing = Node { uuid: Uuid::new_v4(), name: None, instance_uuid: None, ..node.clone() };
    assert_not_found(
        store.certify(missing.clone(), vec![], None, certificate(missing.uuid, 1)).await,
        Noun::Node,
        missing.uuid,
    );
    for uuid in [node.uuid, other.uuid, missing.uuid] {
        assert_eq!(store.certificates(uuid).await.unwrap(), []);
        assert_eq!(store.history(uuid).await.unwrap(), []);
    }
    assert_eq!(store.node(node.uuid).await.unwrap(), node);
    store.certify(node.clone(), vec![], Some(lease), certificate(node.uuid, 1)).await.unwrap();
}

pub async fn they_outlive_their_node<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let first = certificate(node.uuid, 1);
    let written = store.certify(node.clone(), vec![], None, first.clone()).await.unwrap();
    store.delete_node(node.uuid, written.version, vec![]).await.unwrap();
    assert_eq!(store.certificates(node.uuid).await.unwrap(), std::slice::from_ref(&first));
    assert_eq!(store.certificate(&first.id).await.unwrap(), first);
    // Enrolled again, its row goes on.
    let again = store.create_node(node.clone(), vec![]).await.unwrap();
    assert_stale(store.certify(again.clone(), vec![], None, first).await, node.uuid);
    store.certify(again, vec![], None, certificate(node.uuid, 2)).await.unwrap();
    assert_eq!(store.certificates(node.uuid).await.unwrap().len(), 2);
}

pub async fn each_has_its_line_in_the_log<S: Store>(store: Arc<S>) {
    let lines = async || store.certificate_log(1, 100).await.unwrap();
    assert_eq!(lines().await, Vec::<String>::new());
    let (first, second) = (enrolled(&*store, "first").await, enrolled(&*store, "second").await);
    let first = store.certify(first.clone(), vec![], None, certificate(first.uuid, 1)).await.unwrap();
    store.certify(second.clone(), vec![], None, certificate(second.uuid, 1)).await.unwrap();
    // What is not stored is in no log.
    assert_stale(store.certify(first.clone(), vec![], None, certificate(first.uuid, 7)).await, first.uuid);
    let first = store.certify(first.clone(), vec![], None, certificate(first.uuid, 2)).await.unwrap();
    let all = lines().await;
    let log = Log::read(all.iter().map(String::as_str)).unwrap();
    let heads: Vec<_> = log.entries().iter().map(|entry| (entry.node.clone(), entry.number)).collect();
    let (one, other) = (first.uuid.to_string(), second.uuid.to_string());
    assert_eq!(heads, [(one.clone(), 1), (other, 1), (one, 2)]);
    assert_eq!(log.entries()[2].certificate, certificate(first.uuid, 2).id);
    assert_eq!(store.certificate_log(2, 1).await.unwrap(), all[1..2]);
    assert_eq!(store.certificate_log(4, 100).await.unwrap(), Vec::<String>::new());
    store.delete_node(first.uuid, first.version, vec![]).await.unwrap();
    assert_eq!(lines().await, all, "the log outlives its nodes");
}

pub async fn a_change_of_the_key_is_stored_once<S: Store>(store: Arc<S>) {
    for change in ["one", "two", "one"] {
        store.add_key_change(change.to_owned()).await.unwrap();
    }
    assert_eq!(store.key_changes().await.unwrap(), ["one", "two"]);
}
