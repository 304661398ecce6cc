//! Values that the checks store, and what they expect of an outcome.

use model::agent::AgentKind;
use model::history::Severity;
use model::{Certificate, Cursor, Event, EventKind, Node, Resource, Run, RunKind, Timestamp};
use serde_json::{Map, json};
use std::collections::BTreeSet;
use store::{HeartbeatRecord, Noun, ResourceWrite, Store, StoreError, Unique};
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

/// The instant `n` microseconds after an arbitrary one.
pub(super) fn at(n: i64) -> Timestamp {
    Timestamp(1_790_000_000_000_000 + n)
}

/// A node with something in every kind of field.
pub(super) fn new_node(name: &str) -> Node {
    let mut node = Node::enrolled(Uuid::new_v4(), "redfish", at(0));
    node.name = Some(name.to_owned());
    node.instance_uuid = Some(Uuid::new_v4());
    node.driver_info =
        object(json!({"redfish_address": "https://192.0.2.1", "redfish_password": "ünïcode \"\0"}));
    node.properties = object(json!({"memory_mb": 262144, "deep": {"list": [1, -2, 0.5, null, true, "x"]}}));
    node.extra = object(json!({"'; DROP TABLE node; --": u64::MAX}));
    node.next_wake_at = Some(at(50));
    node.run = Some(Run { cursor: Cursor::AwaitAgent, ..Run::new(RunKind::AutomatedClean, at(0)) });
    node
}

/// A certificate of a node, with what is hard to store.
pub fn certificate(node: Uuid, number: u64) -> Certificate {
    Certificate {
        id: format!("{:064x}", u128::from(number) + node.as_u128() / 2),
        node,
        number,
        at: at(1),
        finding: "erased".to_owned(),
        command_id: "'; DROP TABLE certificate; --".to_owned(),
        file: "{\"payload\":\"ünïcode \\\"\\u0000\"}".to_owned(),
    }
}

/// A port with the address 52:54:00:00:00:`last`.
pub(super) fn new_port(node: Uuid, last: u8) -> Resource {
    let address = format!("52:54:00:00:00:{last:02x}").parse().expect("a MAC address");
    Resource::port(Uuid::new_v4(), node, address, at(0))
}

/// Store a new resource.
pub(super) async fn create<S: Store>(store: &S, resource: Resource) -> store::Result<Resource> {
    store.write_resource(ResourceWrite::Create(resource), None, vec![]).await
}

/// Write a resource at the version it carries.
pub(super) async fn update<S: Store>(store: &S, resource: Resource) -> store::Result<Resource> {
    store.write_resource(ResourceWrite::Update(resource), None, vec![]).await
}

/// Delete a resource at the version it carries.
pub(super) async fn delete<S: Store>(store: &S, resource: &Resource) -> store::Result<Resource> {
    store
        .write_resource(ResourceWrite::Delete(resource.kind, resource.uuid, resource.version), None, vec![])
        .await
}

pub(super) fn event(n: i64) -> Event {
    Event::new(EventKind::Transition, Severity::Info, format!("event {n}"), at(n))
}

pub(super) fn object(value: serde_json::Value) -> Map<String, serde_json::Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Enrol a node with [`new_node`]'s fields.
pub(super) async fn enrolled<S: Store>(store: &S, name: &str) -> Node {
    store.create_node(new_node(name), vec![]).await.expect("a new node is stored")
}

/// The nodes rung for since the last call of this; a call of the store has rung when it returns.
pub(super) fn rung(ears: &mut UnboundedReceiver<Uuid>) -> BTreeSet<Uuid> {
    std::iter::from_fn(|| ears.try_recv().ok()).collect()
}

#[track_caller]
pub(super) fn assert_not_found<T: std::fmt::Debug>(
    outcome: store::Result<T>,
    expected: impl Into<Noun>,
    ident: impl ToString,
) {
    let expected = (expected.into(), ident.to_string());
    match outcome {
        Err(StoreError::NotFound { what, ident }) => assert_eq!((what, ident), expected),
        other => panic!("expected not found: {expected:?}, got {other:?}"),
    }
}

#[track_caller]
pub(super) fn assert_duplicate<T: std::fmt::Debug>(
    outcome: store::Result<T>,
    expected: Unique,
    value: impl ToString,
) {
    let expected = (expected, value.to_string());
    match outcome {
        Err(StoreError::Duplicate { what, value }) => assert_eq!((what, value), expected),
        other => panic!("expected a duplicate: {expected:?}, got {other:?}"),
    }
}

#[track_caller]
pub(super) fn assert_stale<T: std::fmt::Debug>(outcome: store::Result<T>, node: Uuid) {
    match outcome {
        Err(StoreError::Stale(stale)) => assert_eq!(stale, node),
        other => panic!("expected the write of node {node} to be stale, got {other:?}"),
    }
}

pub(super) fn beat(n: i64) -> HeartbeatRecord {
    HeartbeatRecord {
        callback_url: "https://192.0.2.9:9999".to_owned(),
        verify_ca: Some("PEM".to_owned()),
        agent_version: Some("0.1.0".to_owned()),
        at: at(n),
        agent: AgentKind::Ipa,
    }
}
