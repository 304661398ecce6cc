//! What every store does, as checks for the tests of an implementation.
//!
//! ```text
//! #[tokio::test(flavor = "multi_thread")]
//! async fn conforms() {
//!     store::conformance::check(async || MyStore::new()).await;
//! }
//! ```
//!
//! Calls "at once" run as tasks of their own, so a runtime of several threads shows more.

mod bundles;
mod certificates;
mod contact;
mod inventory;
mod lease;
mod nodes;
mod ports;
mod resources;

use crate::{Noun, Store, StoreError, Unique};
use model::history::Severity;
use model::{Event, EventKind, Node, Port, Timestamp};
use serde_json::{Map, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

/// Run every check, each on a new store of `make`. Panics at the first that fails.
pub async fn check<S: Store + 'static>(make: impl AsyncFn() -> S) {
    macro_rules! run {
        ($($check:path),* $(,)?) => {$(
            eprintln!("conformance: {}", stringify!($check));
            Box::pin($check(Arc::new(make().await))).await;
        )*};
    }
    run!(
        nodes::a_node_comes_back_whole,
        nodes::a_look_returns_a_changed_node,
        nodes::lookup_by_ident,
        nodes::order_of_lists,
        nodes::unique_values,
        nodes::a_stale_write_changes_nothing,
        nodes::unknown_nodes,
        nodes::of_two_updates_at_once_one_wins,
        nodes::many_writers_lose_no_update,
        nodes::history_comes_with_the_write,
        nodes::events_have_the_state_before_the_write,
        nodes::delete_removes_what_belongs_to_the_node,
        nodes::nodes_that_are_due,
        nodes::the_bell_rings_for_nodes,
        ports::ports_come_and_go,
        ports::unique_addresses,
        ports::of_two_ports_with_one_address_one_wins,
        ports::the_bell_rings_for_ports,
        contact::a_token_is_given_once,
        contact::of_two_agents_at_once_one_gets_the_token,
        contact::a_heartbeat_is_stored,
        contact::a_heartbeat_with_another_token_changes_nothing,
        contact::forgetting_lets_the_next_agent_in,
        contact::a_heartbeat_never_makes_a_node_write_stale,
        contact::heartbeats_of_many_nodes_at_once,
        contact::progress_has_a_time_of_its_own,
        contact::catalogues_are_kept,
        contact::the_bell_rings_for_contact,
        inventory::the_last_inventory_is_kept,
        inventory::a_large_one_is_refused,
        inventory::the_bell_rings_for_inventories,
        inventory::an_inspection_is_written_whole,
        inventory::half_an_inspection_is_never_written,
        resources::resources_come_and_go,
        resources::unique_values,
        resources::a_stale_resource_write_changes_nothing,
        resources::of_two_of_one_name_one_wins,
        resources::a_node_is_deleted_with_its_resources,
        resources::a_node_is_written_with_it_or_not_at_all,
        resources::an_allocation_ends_with_the_instance,
        resources::resources_ring_only_for_the_node,
        bundles::bundles_come_and_go,
        bundles::one_of_a_name_in_a_scope,
        bundles::a_node_is_deleted_with_its_bundles,
        certificates::one_comes_with_the_write,
        certificates::a_stale_certificate_changes_nothing,
        certificates::they_outlive_their_node,
        lease::one_holder_at_a_time,
        lease::of_two_conductors_at_once_one_gets_the_lease,
        lease::a_lease_taken_over_fences_the_old_holder,
        lease::renewing_and_giving_back,
        lease::an_epoch_is_never_given_twice,
        lease::a_lease_of_another_node_does_not_count,
        lease::leases_do_not_ring,
    );
}

/// The instant `n` microseconds after an arbitrary one.
fn at(n: i64) -> Timestamp {
    Timestamp(1_790_000_000_000_000 + n)
}

/// A node with something in every kind of field.
fn new_node(name: &str) -> Node {
    let mut node = Node::enrolled(Uuid::new_v4(), "redfish", at(0));
    node.name = Some(name.to_owned());
    node.instance_uuid = Some(Uuid::new_v4());
    node.driver_info =
        object(json!({"redfish_address": "https://192.0.2.1", "redfish_password": "ünïcode \"\0"}));
    node.properties = object(json!({"memory_mb": 262144, "deep": {"list": [1, -2, 0.5, null, true, "x"]}}));
    node.extra = object(json!({"'; DROP TABLE node; --": u64::MAX}));
    node.next_wake_at = Some(at(50));
    node
}

fn new_port(node: Uuid, address: &str) -> Port {
    Port {
        uuid: Uuid::new_v4(),
        node_uuid: node,
        address: address.to_owned(),
        name: Some("eno1".to_owned()),
        pxe_enabled: true,
        extra: object(json!({"rack": 7})),
        local_link_connection: Map::new(),
        other: Map::new(),
        created_at: at(0),
        updated_at: None,
    }
}

fn event(n: i64) -> Event {
    Event::new(EventKind::Transition, Severity::Info, format!("event {n}"), at(n))
}

fn object(value: serde_json::Value) -> Map<String, serde_json::Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Enrol a node with [`new_node`]'s fields.
async fn enrolled<S: Store>(store: &S, name: &str) -> Node {
    store.create_node(new_node(name), vec![]).await.expect("a new node is stored")
}

/// The nodes rung for since the last call of this; a call of the store has rung when it returns.
fn rung(ears: &mut UnboundedReceiver<Uuid>) -> BTreeSet<Uuid> {
    std::iter::from_fn(|| ears.try_recv().ok()).collect()
}

#[track_caller]
fn assert_not_found<T: std::fmt::Debug>(
    outcome: crate::Result<T>,
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
fn assert_duplicate<T: std::fmt::Debug>(outcome: crate::Result<T>, expected: Unique, value: impl ToString) {
    let expected = (expected, value.to_string());
    match outcome {
        Err(StoreError::Duplicate { what, value }) => assert_eq!((what, value), expected),
        other => panic!("expected a duplicate: {expected:?}, got {other:?}"),
    }
}

#[track_caller]
fn assert_stale<T: std::fmt::Debug>(outcome: crate::Result<T>, node: Uuid) {
    match outcome {
        Err(StoreError::Stale(stale)) => assert_eq!(stale, node),
        other => panic!("expected the write of node {node} to be stale, got {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::MemoryStore;

    #[tokio::test(flavor = "multi_thread")]
    async fn memory_store_conforms() {
        super::check(async || MemoryStore::new()).await;
    }
}
