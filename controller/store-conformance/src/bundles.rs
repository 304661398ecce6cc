//! Bundles: one of a name in a scope, and gone with the node that they were meant for.

use super::samples::{assert_not_found, at, enrolled, event, object, rung};
use model::{Bundle, LoggedEvent, Scope};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{EventCursor, Noun, Store};
use uuid::Uuid;

fn bundle(name: &str, digit: char, scope: Scope) -> Bundle {
    Bundle {
        name: name.to_owned(),
        scope,
        digest: String::from(digit).repeat(64),
        size: 1 << 40,
        version: "1.2-rc~1".to_owned(),
        vendor: "ACME \"Größe\"".to_owned(),
        signed_by: Some("0123456789abcdef".to_owned()),
        manifest: object(
            json!({"entry": ["/bin/x", "'; DROP TABLE bundle; --"], "grants": {"network": true}}),
        ),
        created_at: at(1),
    }
}

pub async fn bundles_come_and_go<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "n").await.uuid;
    let mut ears = store.bell().listen();
    let scopes = [
        Scope::All,
        Scope::Driver("redfish".to_owned()),
        Scope::ResourceClass("a:b'%".to_owned()),
        Scope::Node(node),
    ];
    let mut kept = Vec::new();
    for name in ["a", "b"] {
        for scope in &scopes {
            kept.push(bundle(name, 'a', scope.clone()));
        }
    }
    for new in kept.iter().rev() {
        assert_eq!(store.put_bundle(new.clone(), event(1)).await.unwrap(), None);
    }
    assert_eq!(store.bundles().await.unwrap(), kept, "by name, then from the widest scope");

    let gone = store.delete_bundle(&kept[2].digest, Some(&scopes[2]), event(2)).await.unwrap();
    assert_eq!(gone, [kept.remove(2), kept.remove(5)]);
    assert_eq!(store.bundles().await.unwrap(), kept);
    let digest = kept[0].digest.clone();
    assert_not_found(store.delete_bundle(&digest, Some(&scopes[2]), event(2)).await, Noun::Bundle, &digest);
    assert_not_found(store.delete_bundle("%", None, event(2)).await, Noun::Bundle, "%");
    let other = bundle("c", 'c', Scope::All);
    store.put_bundle(other.clone(), event(1)).await.unwrap();
    assert_eq!(store.delete_bundle(&digest, None, event(2)).await.unwrap(), kept);
    assert_eq!(store.bundles().await.unwrap(), [other]);
    assert_eq!(rung(&mut ears), BTreeSet::new(), "bundles ring nothing");
}

pub async fn one_of_a_name_in_a_scope<S: Store>(store: Arc<S>) {
    let (old, new) = (bundle("a", '1', Scope::All), bundle("a", '2', Scope::All));
    let narrow = bundle("a", '1', Scope::Driver("all".to_owned()));
    assert_eq!(store.put_bundle(old.clone(), event(1)).await.unwrap(), None);
    assert_eq!(store.put_bundle(narrow.clone(), event(1)).await.unwrap(), None);
    assert_eq!(store.put_bundle(new.clone(), event(1)).await.unwrap(), Some(old), "the replaced one");
    assert_eq!(store.bundles().await.unwrap(), [new.clone(), narrow]);
    assert_eq!(store.put_bundle(new.clone(), event(1)).await.unwrap(), Some(new));
}

pub async fn a_node_is_deleted_with_its_bundles<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "n").await;
    let missing = Uuid::new_v4();
    let lost = store.put_bundle(bundle("a", '1', Scope::Node(missing)), event(1)).await;
    assert_not_found(lost, Noun::Node, missing);
    store.put_bundle(bundle("a", '1', Scope::Node(node.uuid)), event(1)).await.unwrap();
    let wide = bundle("a", '1', Scope::All);
    store.put_bundle(wide.clone(), event(1)).await.unwrap();
    store.delete_node(node.uuid, node.version, vec![]).await.unwrap();
    assert_eq!(store.bundles().await.unwrap(), [wide]);
}

/// Each bundle that is put or deleted has an event in the log, with the write; one that is rejected has none.
pub async fn changes_of_bundles_are_logged<S: Store>(store: Arc<S>) {
    let scopes = [Scope::All, Scope::Driver("redfish".to_owned())];
    let [wide, narrow] = scopes.each_ref().map(|scope| bundle("a", '1', scope.clone()));
    let next = bundle("a", '2', Scope::All);
    store.put_bundle(wide.clone(), event(1)).await.unwrap();
    store.put_bundle(narrow, event(2)).await.unwrap();
    let lost = store.put_bundle(bundle("a", '1', Scope::Node(Uuid::from_u128(9))), event(3)).await;
    assert!(lost.is_err());
    store.put_bundle(next.clone(), event(4)).await.unwrap();
    assert!(store.delete_bundle(&next.digest, Some(&scopes[1]), event(5)).await.is_err());
    store.put_bundle(wide.clone(), event(6)).await.unwrap();
    store.delete_bundle(&wide.digest, None, event(7)).await.unwrap();

    let page = store.events(None, 100).await.unwrap();
    let logged = |(_, one): &(EventCursor, LoggedEvent)| {
        assert_eq!((one.node, &one.resource, &one.owner), (None, &None, &None));
        let bundle = one.bundle.clone().unwrap();
        assert_eq!((bundle.name.as_str(), bundle.version.as_str()), ("a", "1.2-rc~1"));
        let done = one.event.text.rsplit_once("event ").unwrap().1.parse::<i64>().unwrap();
        (done, one.event.at, bundle.scope, bundle.digest)
    };
    let expected = [
        (1, &scopes[0], &wide),
        (2, &scopes[1], &wide),
        (4, &scopes[0], &next),
        (6, &scopes[0], &wide),
        (7, &scopes[0], &wide),
        (7, &scopes[1], &wide),
    ];
    let expected = expected.map(|(n, scope, bundle)| (n, at(n), scope.to_string(), bundle.digest.clone()));
    assert_eq!(page.events.iter().map(logged).collect::<Vec<_>>(), expected);
}
