//! What a page costs, in steps of SQLite's virtual machine, does not depend on how many nodes there are.

use super::{list, node_list, resource_list};
use crate::functions;
use crate::migrate::{self, MIGRATIONS};
use model::{ResourceKind, Timestamp};
use rusqlite::Connection;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{
    FieldValue, NodeField, NodeFilter, NodeQuery, Place, ResourceField, ResourceFilter, ResourceQuery,
};
use uuid::Uuid;

/// Steps between two looks at the count.
const GRAIN: u64 = 50;
const SMALL: u32 = 4_000;
const LARGE: u32 = 20_000;

/// A database of `count` nodes with a port each; 20 are of the class `rare`, 1,500 of `some`, in which none is in
/// maintenance; of the others half are.
fn database(count: u32) -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    functions::add_to(&connection).unwrap();
    migrate::apply(&mut connection, MIGRATIONS, 0).unwrap();
    let change = connection.transaction().unwrap();
    for number in 0..count {
        let class = match number % (count / 20) {
            0 => "rare",
            place if place <= 75 => "some",
            _ => "common",
        };
        let uuid = Uuid::from_u128(u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_string();
        let node = json!({
            "uuid": uuid, "version": 1, "created_at": number / 3, "name": format!("node-{number}"),
            "driver": "redfish", "provision_state": "available", "resource_class": class,
            "maintenance": class == "common" && number % 2 == 0,
            "other": {"owner": if number % 2 == 0 { "even" } else { "odd" }, "shard": "one", "description": "d"},
        });
        change
            .prepare_cached("INSERT INTO node (uuid, doc) VALUES (?1, ?2)")
            .unwrap()
            .execute([&uuid, &node.to_string()])
            .unwrap();
        let port = json!({
            "kind": "port", "uuid": uuid, "version": 1, "created_at": number, "node": uuid, "key": number.to_string(),
            "fields": {"address": number.to_string()},
        });
        change
            .prepare_cached("INSERT INTO resource (kind, uuid, doc) VALUES ('port', ?1, ?2)")
            .unwrap()
            .execute([&uuid, &port.to_string()])
            .unwrap();
    }
    change.commit().unwrap();
    connection
}

/// Steps that `work` takes.
fn steps(connection: &mut Connection, work: impl FnOnce(&Connection)) -> u64 {
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    let look = move || {
        counted.fetch_add(GRAIN, Ordering::Relaxed);
        false
    };
    connection.progress_handler(i32::try_from(GRAIN).unwrap(), Some(look)).unwrap();
    work(connection);
    connection.progress_handler(0, None::<fn() -> bool>).unwrap();
    count.load(Ordering::Relaxed)
}

fn find(query: &NodeQuery, expected: usize) -> impl FnOnce(&Connection) {
    move |connection| {
        let list = node_list::list(connection, query).unwrap();
        assert_eq!(list::find(connection, &list).unwrap().len(), expected, "{query:?}");
    }
}

fn filtered(fields: &[(NodeField, FieldValue)]) -> NodeFilter {
    NodeFilter { equal: fields.to_vec(), ..NodeFilter::default() }
}

fn of_class(class: &str) -> (NodeField, FieldValue) {
    (NodeField::ResourceClass, class.into())
}

const MAINTENANCE: (NodeField, FieldValue) = (NodeField::Maintenance, FieldValue::Bool(true));

/// Queries whose pages every fleet fills, with how many rows are found.
fn queries() -> Vec<(NodeQuery, usize)> {
    let top = || filtered(&[(NodeField::ParentNode, FieldValue::Null)]);
    let middle = |sort: Option<NodeField>, value: FieldValue| Place {
        value: if sort.is_some() { value } else { FieldValue::Null },
        created_at: Timestamp(1000),
        uuid: Uuid::nil(),
    };
    let mut queries = Vec::new();
    for (sort, value) in [
        (None, FieldValue::Null),
        (Some(NodeField::Name), "node-2000".into()),
        (Some(NodeField::ResourceClass), "common".into()),
        (Some(NodeField::Fault), FieldValue::Null),
    ] {
        for after in [None, Some(middle(sort, value))] {
            for filter in [
                top(),
                filtered(&[MAINTENANCE]),
                NodeFilter { associated: Some(false), ..top() },
                NodeFilter { one_of: vec![(NodeField::Shard, vec!["one".to_owned()])], ..top() },
                top().within("odd"),
            ] {
                queries
                    .push((NodeQuery { sort, after: after.clone(), ..NodeQuery::first(100, filter) }, 101));
            }
        }
    }
    queries.push((NodeQuery::first(100, filtered(&[of_class("rare"), MAINTENANCE])), 0));
    queries.push((NodeQuery::first(100, filtered(&[of_class("rare")])), 20));
    queries
}

#[test]
fn a_page_costs_what_the_page_costs() {
    let (mut small, mut large) = (database(SMALL), database(LARGE));
    for (query, expected) in queries() {
        let few = steps(&mut small, find(&query, expected));
        let many = steps(&mut large, find(&query, expected));
        assert!(many <= few + few / 4 + 1000, "{few} steps, and with more nodes {many}: {query:#?}");
        assert!(many < 60_000, "{many} steps: {query:#?}");
    }
}

/// Both ranges are larger than what is read without a question, and no node is in both.
#[test]
fn two_filters_cost_the_smaller_range() {
    let (mut small, mut large) = (database(SMALL), database(LARGE));
    for fields in [[of_class("some"), MAINTENANCE], [MAINTENANCE, of_class("some")]] {
        for sort in [None, Some(NodeField::Name)] {
            let query = NodeQuery { sort, ..NodeQuery::first(100, filtered(&fields)) };
            let few = steps(&mut small, find(&query, 0));
            let many = steps(&mut large, find(&query, 0));
            // The larger range is counted as far as the smaller one goes.
            assert!(many < 8 * 1500 * 10, "{many} steps: {query:#?}");
            assert!(many < 4 * few, "{few} steps, and with more nodes {many}: {query:#?}");
        }
    }
}

#[test]
fn pages_of_ports_cost_what_the_page_costs() {
    let (mut small, mut large) = (database(SMALL), database(LARGE));
    let all = || ResourceFilter::all(ResourceKind::Port);
    let sort = Some(ResourceField::Address);
    let queries = [
        (ResourceQuery::first(100, all()), 101),
        (ResourceQuery { sort, ..ResourceQuery::first(100, all()) }, 101),
        (ResourceQuery::first(100, all().with(ResourceField::Address, "77".into())), 1),
        (ResourceQuery::first(100, ResourceFilter { project: Some("odd".to_owned()), ..all() }), 101),
        (ResourceQuery::first(100, ResourceFilter::of_node(ResourceKind::Port, Uuid::nil())), 1),
    ];
    for (query, expected) in queries {
        let find = || {
            let query = &query;
            move |connection: &Connection| {
                let list = resource_list::list(connection, query).unwrap();
                assert_eq!(list::find(connection, &list).unwrap().len(), expected, "{query:?}");
            }
        };
        let (few, many) = (steps(&mut small, find()), steps(&mut large, find()));
        assert!(many <= few + few / 4 + 1000, "{few} steps, and with more ports {many}: {query:#?}");
    }
}

/// What each kind of statement reads: an index, in its order.
#[test]
fn ranges_are_read_from_their_index_in_order() {
    let connection = database(20);
    let filter = filtered(&[MAINTENANCE, (NodeField::ParentNode, FieldValue::Null)]);
    let after = Place { value: FieldValue::Null, created_at: Timestamp(2), uuid: Uuid::nil() };
    let query = NodeQuery { after: Some(after), ..NodeQuery::first(5, filter) };
    let list = node_list::list(&connection, &query).unwrap();
    for (range, index) in list.ranges.iter().zip(["node_list_maintenance", "node_list_parent_node"]) {
        let plan = list::plan(&connection, &list, range);
        assert_eq!(plan.len(), 1, "nothing is sorted: {plan:?}");
        assert!(plan[0].contains(&format!("SEARCH l USING INDEX {index} (")), "{plan:?}");
        assert!(plan[0].contains("AND (created_at,uuid)>(?,?))"), "{plan:?}");
    }
    let plan = list::plan(&connection, &list, &list.all);
    assert!(plan[0].starts_with("SEARCH l USING PRIMARY KEY ((created_at,uuid)>(?,?))"), "{plan:?}");
}

/// Counts read the index of their first field, in its order, and no row.
#[test]
fn counts_are_read_from_an_index_alone() {
    let connection = database(20);
    let plan = |fields: &[NodeField]| -> Vec<String> {
        let sql = node_list::counting(fields, None).sql;
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let plan = statement.query_map([], |row| row.get(3)).unwrap();
        plan.collect::<rusqlite::Result<_>>().unwrap()
    };
    for fields in [
        &[NodeField::ProvisionState][..],
        &[NodeField::Owner],
        &[NodeField::ResourceClass],
        &[NodeField::Maintenance],
        &[NodeField::ConductorGroup, NodeField::Uuid],
    ] {
        let plan = plan(fields);
        let index = format!("SCAN l USING COVERING INDEX node_list_{}", fields[0].name());
        assert_eq!(plan[0], index, "{plan:?}");
        // Of two fields the second is sorted.
        assert_eq!(plan.len(), fields.len(), "{plan:?}");
    }
}

/// A controller that keeps up has no overdue node, and finds that out without a look at each.
#[test]
fn no_overdue_node_costs_nothing() {
    let mut large = database(LARGE);
    let overdue = NodeFilter { due_before: Some(Timestamp(1)), ..NodeFilter::default() };
    let spent = steps(&mut large, find(&NodeQuery::first(100, overdue), 0));
    assert!(spent < 1000, "{spent} steps");
}
