//! Measures pages of lists: `cargo run --release -p store-sqlite --example lists -- DIRECTORY [COUNT …]`.
//! For each number of nodes (1,000, 20,000 and 100,000) it makes a database `COUNT.db` with its key `COUNT.key`, with a port
//! for each node, and reads pages of 100 from all over the list. Prints the median and the 99th percentile.

use model::{Node, ProvisionState, Resource, ResourceKind, Timestamp};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::prelude::*;
use store::{
    FieldValue, NodeField, NodeFilter, NodeQuery, Place, ResourceFilter, ResourceQuery, ResourceWrite,
};
use store_sqlite::{DatabaseKey, SqliteStore};
use uuid::Uuid;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Pages of each kind.
const PAGES: u64 = 300;

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let directory = args.next().map(PathBuf::from).ok_or("usage: lists DIRECTORY [COUNT …]")?;
    let mut counts: Vec<u64> = args.map(|count| count.parse()).collect::<Result<_, _>>()?;
    if counts.is_empty() {
        counts = vec![1_000, 20_000, 100_000];
    }
    for count in counts {
        let begun = Instant::now();
        let store = filled(&directory, count).await?;
        println!("{count} nodes ({:.1} s to make them)", begun.elapsed().as_secs_f64());
        measure(&store, count).await?;
    }
    Ok(())
}

fn node(number: u64) -> Node {
    let mut node =
        Node::enrolled(Uuid::new_v4(), "redfish", Timestamp(i64::try_from(number).unwrap_or_default()));
    node.name = Some(format!("rack-{}-node-{number}", number / 40));
    node.resource_class = Some(if number % 1000 == 7 { "gpu" } else { "baremetal" }.to_owned());
    node.provision_state =
        if number.is_multiple_of(3) { ProvisionState::Active } else { ProvisionState::Manageable };
    node.maintenance = number.is_multiple_of(10);
    node.other.insert("owner".into(), format!("project-{}", number % 50).into());
    node.other.insert("description".into(), format!("the machine number {number}").into());
    for (name, value) in [
        ("redfish_address", json!(format!("https://192.0.2.{}", number % 250))),
        ("redfish_username", json!("anneal")),
        ("redfish_password", json!("a password of a usual length")),
        ("redfish_system_id", json!("/redfish/v1/Systems/1")),
    ] {
        node.driver_info.insert(name.to_owned(), value);
    }
    let capabilities = json!({"cpus": 64, "memory_mb": 262_144, "local_gb": 900, "cpu_arch": "x86_64"});
    node.properties = capabilities.as_object().cloned().unwrap_or_default();
    node.extra.insert("note".into(), "x".repeat(500).into());
    node
}

async fn filled(directory: &Path, count: u64) -> Outcome<Arc<SqliteStore>> {
    let key = DatabaseKey::generate().ok_or("no random numbers")?;
    std::fs::write(directory.join(format!("{count}.key")), key.to_text())?;
    let store = Arc::new(SqliteStore::open(&directory.join(format!("{count}.db")), &key)?);
    let mut number = 0;
    while number < count {
        let mut writes = tokio::task::JoinSet::new();
        for number in number..(number + 500).min(count) {
            let store = store.clone();
            writes.spawn(async move {
                let node = store.create_node(node(number), vec![]).await?;
                let address = format!(
                    "52:54:00:{:02x}:{:02x}:{:02x}",
                    number >> 16 & 255,
                    number >> 8 & 255,
                    number & 255
                );
                let mut port = Resource::new(ResourceKind::Port, Uuid::new_v4(), node.created_at);
                port.node = Some(node.uuid);
                port.fields.insert("address".into(), address.into());
                store.write_resource(ResourceWrite::Create(port), None, vec![]).await
            });
        }
        for written in writes.join_all().await {
            written?;
        }
        number += 500;
    }
    Ok(store)
}

async fn measure(store: &SqliteStore, count: u64) -> Outcome<()> {
    let of = |fields: Vec<(NodeField, FieldValue)>| {
        let equal = [vec![(NodeField::ParentNode, FieldValue::Null)], fields].concat();
        NodeFilter { equal, ..NodeFilter::default() }
    };
    let class = |class: &str| (NodeField::ResourceClass, FieldValue::from(class));
    let maintenance = (NodeField::Maintenance, FieldValue::Bool(true));
    let state = |state: ProvisionState| (NodeField::ProvisionState, FieldValue::from(state.as_str()));
    let gpu = NodeQuery::first(100, of(vec![class("gpu")]));
    let lists = [
        ("nodes", NodeQuery::first(100, of(vec![]))),
        (
            "by name, descending",
            NodeQuery { sort: Some(NodeField::Name), descending: true, ..NodeQuery::first(100, of(vec![])) },
        ),
        ("active", NodeQuery::first(100, of(vec![state(ProvisionState::Active)]))),
        ("of class gpu", gpu.clone()),
        ("gpu, by name", NodeQuery { sort: Some(NodeField::Name), ..gpu }),
        ("gpu and maintenance", NodeQuery::first(100, of(vec![class("gpu"), maintenance.clone()]))),
        (
            "active and maintenance",
            NodeQuery::first(100, of(vec![state(ProvisionState::Active), maintenance])),
        ),
        ("of a project", NodeQuery::first(100, of(vec![]).within("project-7"))),
    ];
    for (what, query) in lists {
        let mut times = Vec::new();
        let mut nodes = Vec::new();
        for page in 0..PAGES {
            let place = Place {
                value: FieldValue::from(format!("rack-{page}").as_str()),
                created_at: Timestamp(i64::try_from(page * count / PAGES)?),
                uuid: Uuid::nil(),
            };
            let query = NodeQuery { after: (page > 0).then_some(place), ..query.clone() };
            let begun = Instant::now();
            nodes = store.node_page(query).await?.nodes;
            times.push(begun.elapsed());
        }
        report(what, nodes.len(), times);
    }
    let query = ResourceQuery::first(100, ResourceFilter::all(ResourceKind::Port));
    let mut times = Vec::new();
    for _ in 0..PAGES {
        let begun = Instant::now();
        store.resource_page(query.clone()).await?;
        times.push(begun.elapsed());
    }
    report("ports", 100, times);
    let page = store.node_page(NodeQuery::first(100, NodeFilter::default())).await?;
    let uuids: Vec<_> = page.nodes.iter().map(|node| node.uuid).collect();
    let mut times = Vec::new();
    for _ in 0..PAGES {
        let begun = Instant::now();
        store.contacts(&uuids).await?;
        store.lease_holders(&uuids, Timestamp(0)).await?;
        times.push(begun.elapsed());
    }
    report("contacts and leases of 100 nodes", 100, times);
    let scan = NodeFilter { description_contains: Some("number 77".to_owned()), ..NodeFilter::default() };
    let begun = Instant::now();
    let found = store.node_page(NodeQuery::first(usize::MAX, scan)).await?.nodes.len();
    report("all with a text in the description", found, vec![begun.elapsed()]);
    Ok(())
}

fn report(what: &str, items: usize, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)].as_secs_f64() * 1000.0;
    println!("  {what:<36} {items:>5} items  median {:>8.2} ms  p99 {:>8.2} ms", at(50), at(99));
}
