//! How many rows PostgreSQL reads for a page does not depend on how many nodes there are.

use super::{list, node_list};
use crate::address::{self, Settings};
use crate::change::Change;
use crate::connect::{self, Tls};
use crate::migrate::{self, MIGRATIONS};
use deadpool_postgres::Pool;
use model::Timestamp;
use postgres_server::{Server, shared};
use store::{FieldValue, NodeField, NodeFilter, NodeQuery, Place};
use uuid::Uuid;

const SMALL: u32 = 4_000;
const LARGE: u32 = 20_000;

/// A database of `count` nodes; 20 are of the class `rare`, 1,500 of `some`, in which none is in maintenance; of the others half
/// are.
async fn database(server: &Server, count: u32) -> Pool {
    let name = server.create();
    let settings = Settings::at(&server.url(&name));
    let address = address::read(&settings).unwrap();
    let pool = connect::pool(&address, &Tls::of(&address.trust).unwrap(), &settings, 1).unwrap();
    migrate::apply(&pool, &name, MIGRATIONS).await.unwrap();
    let fill = format!(
        "INSERT INTO node (uuid, version, at_work, created_at, driver, provision_state, maintenance, retired, name,
            resource_class, owner, shard, conductor_group, description, doc)
        SELECT md5(n::text)::uuid, 1, false, n / 3, 'redfish', 'available', class = 'common' AND n % 2 = 0, false,
            'node-' || n, class, CASE WHEN n % 2 = 0 THEN 'even' ELSE 'odd' END, 'one', '', 'd', ''
        FROM generate_series(0, {count} - 1) n, LATERAL (SELECT CASE WHEN n % ({count} / 20) = 0 THEN 'rare'
            WHEN n % ({count} / 20) <= 75 THEN 'some' ELSE 'common' END AS class) c;
        VACUUM ANALYZE node"
    );
    for sql in fill.split(';') {
        server.sql(&name, sql);
    }
    pool
}

/// How many rows of nodes this transaction has read so far.
async fn reads(change: &Change) -> i64 {
    let sql = "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = 'node'";
    change.query_opt(sql, &[]).await.unwrap().unwrap().get(0)
}

/// How many rows are read for a page, which has so many.
async fn cost(pool: &Pool, query: &NodeQuery, expected: usize) -> i64 {
    let change = Change::begin(pool.get().await.unwrap(), "BEGIN").await.unwrap();
    let before = reads(&change).await;
    let list = node_list::list(&change, query).await.unwrap();
    let found = list::find(&change, &list).await.unwrap();
    assert_eq!(found.len(), expected, "{query:?}");
    let read = reads(&change).await - before;
    change.roll_back().await;
    read
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
    let mut queries = Vec::new();
    for (sort, value) in [
        (None, FieldValue::Null),
        (Some(NodeField::Name), "node-2000".into()),
        (Some(NodeField::ResourceClass), "common".into()),
        (Some(NodeField::Fault), FieldValue::Null),
    ] {
        let middle = Place { value, created_at: Timestamp(1000), uuid: Uuid::nil() };
        for after in [None, Some(middle)] {
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
    let descending = true;
    for sort in [NodeField::Maintenance, NodeField::Fault, NodeField::Name].map(Some) {
        queries.push((NodeQuery { sort, descending, ..NodeQuery::first(100, top()) }, 101));
    }
    queries.push((NodeQuery { descending, ..NodeQuery::first(100, top()) }, 101));
    queries
}

#[tokio::test]
async fn a_page_costs_what_the_page_costs() {
    let server = shared();
    let (small, large) = (database(&server, SMALL).await, database(&server, LARGE).await);
    for (query, expected) in queries() {
        let few = cost(&small, &query, expected).await;
        let many = cost(&large, &query, expected).await;
        assert!(many <= 2 * few + 500, "{few} rows, and with more nodes {many}: {query:#?}");
        assert!(many < 4_000, "{many} rows: {query:#?}");
    }
}
