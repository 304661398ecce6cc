//! Lists of nodes: of random nodes, every random query gives the same pages as [`NodeQuery::page_of`] of all nodes.

use super::random::Random;
use super::samples::{at, new_node};
use model::{Basis, Node, PowerState, ProvisionState};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::{FieldValue, NodeField, NodeFilter, NodeQuery, Place, Store};
use uuid::Uuid;

/// Few, so that many nodes share one.
const WORDS: [&str; 6] = ["a", "B", "b", "ä", "Ä", ""];
const STATES: [ProvisionState; 4] = [
    ProvisionState::Enroll,
    ProvisionState::Manageable,
    ProvisionState::InspectWait,
    ProvisionState::Available,
];
/// Fields of `other` that lists know.
const OTHER: [&str; 8] = [
    "instance_name",
    "owner",
    "lessee",
    "conductor_group",
    "chassis_uuid",
    "shard",
    "parent_node",
    "description",
];

fn change(random: &mut Random, node: &mut Node) {
    let word = |random: &mut Random| random.maybe(|random| (*random.one_of(&WORDS)).to_owned());
    node.name = random.maybe(|random| format!("{}-{}", random.one_of(&WORDS), random.below(1_000_000_000)));
    node.instance_uuid = random.maybe(|random| random.uuid());
    node.resource_class = word(random);
    node.fault = word(random);
    (*random.one_of(&["redfish", "ipmi"])).clone_into(&mut node.driver);
    node.power_state = random.maybe(|random| *random.one_of(&[PowerState::On, PowerState::Off]));
    node.next_wake_at = random.maybe(|random| at(i64::try_from(random.below(12)).unwrap_or_default()));
    node.maintenance = random.below(3) == 0;
    node.retired = random.below(3) == 0;
    node.provision_state = *random.one_of(&STATES);
    node.basis = (node.provision_state == ProvisionState::Available).then_some(Basis::NotCleaned);
    for name in OTHER {
        node.other.remove(name);
        if let Some(word) = word(random) {
            node.other.insert(name.to_owned(), word.into());
        } else if random.below(8) == 0 {
            node.other.insert(name.to_owned(), Value::Null);
        }
    }
    // What no client can write, but a document can hold.
    if random.below(20) == 0 {
        let name = *random.one_of(&OTHER);
        node.other
            .insert(name.to_owned(), random.one_of(&[1.into(), true.into(), Value::Array(vec![])]).clone());
    }
}

fn filter(random: &mut Random, nodes: &[Node]) -> NodeFilter {
    let mut filter = NodeFilter::default();
    for _ in 0..random.below(4) {
        let field = *random.one_of(&NodeField::ALL);
        // Of a node that there is, mostly.
        let value = match random.below(8) {
            0 => FieldValue::Null,
            1 => (*random.one_of(&WORDS)).into(),
            _ => field.read(random.one_of(nodes)),
        };
        filter.equal.push((field, value));
    }
    let words = |random: &mut Random| {
        (0..random.below(3)).map(|_| random.one_of(&WORDS).to_lowercase()).collect::<Vec<_>>()
    };
    if random.below(4) == 0 {
        filter.one_of.push((NodeField::Shard, words(random)));
    }
    if random.below(6) == 0 {
        filter.one_of.push((NodeField::ConductorGroup, words(random)));
    }
    filter.associated = (random.below(4) == 0).then(|| random.below(2) == 0);
    filter.sharded = (random.below(4) == 0).then(|| random.below(2) == 0);
    for _ in 0..random.below(6).saturating_sub(3) {
        filter = filter.within(random.one_of::<&str>(&WORDS));
    }
    if random.below(6) == 0 {
        filter.one_of.push((NodeField::ProvisionState, vec!["enroll".to_owned(), "inspect wait".to_owned()]));
    }
    filter.description_contains = (random.below(6) == 0).then(|| random.one_of(&WORDS).to_lowercase());
    filter.search = (random.below(6) == 0).then(|| match random.below(3) {
        0 => random.one_of(&WORDS).to_ascii_lowercase(),
        1 => random.one_of(nodes).uuid.to_string()[..3].to_owned(),
        _ => "b-1".to_owned(),
    });
    filter.due_before =
        (random.below(6) == 0).then(|| at(i64::try_from(random.below(12)).unwrap_or_default()));
    filter
}

fn query(random: &mut Random, nodes: &[Node]) -> NodeQuery {
    let sort = random.maybe(|random| *random.one_of(&NodeField::ALL));
    // The marker may be a node that does not match, or is gone.
    let after = (random.below(3) == 0).then(|| Place::of_node(random.one_of(nodes), sort));
    NodeQuery {
        sort,
        descending: random.below(2) == 0,
        after,
        ..NodeQuery::first(1 + random.below(9), filter(random, nodes))
    }
}

/// All pages, one after the other.
async fn check_pages<S: Store>(store: &S, mut query: NodeQuery, nodes: &[Node]) {
    loop {
        let page = store.node_page(query.clone()).await.unwrap();
        let expected = query.page_of(nodes);
        let uuids = |nodes: &[Node]| nodes.iter().map(|node| node.uuid).collect::<Vec<_>>();
        assert_eq!(uuids(&page.nodes), uuids(&expected.nodes), "{query:#?}");
        assert_eq!(page, expected);
        let Some(last) = page.nodes.last().filter(|_| page.more) else { return };
        query.after = Some(Place::of_node(last, query.sort));
    }
}

pub async fn a_page_is_that_of_all_nodes<S: Store>(store: Arc<S>) {
    let mut random = Random::new(7);
    let mut nodes: BTreeMap<Uuid, Node> = BTreeMap::new();
    for round in 0..4 {
        for _ in 0..60 {
            let mut node = new_node("");
            node.uuid = random.uuid();
            node.created_at = at(i64::try_from(random.below(12)).unwrap());
            change(&mut random, &mut node);
            let node = store.create_node(node, vec![]).await.unwrap();
            nodes.insert(node.uuid, node);
        }
        // What was stored changes, and goes.
        let known: Vec<Node> = nodes.values().cloned().collect();
        for mut node in known {
            match random.below(4) {
                0 if round > 0 => {
                    store.delete_node(node.uuid, node.version, vec![]).await.unwrap();
                    nodes.remove(&node.uuid);
                }
                1 | 2 => {
                    change(&mut random, &mut node);
                    let node = store.update_node(node, vec![], None).await.unwrap();
                    nodes.insert(node.uuid, node);
                }
                _ => {}
            }
        }
        let known: Vec<Node> = nodes.values().cloned().collect();
        for _ in 0..60 {
            check_pages(&*store, query(&mut random, &known), &known).await;
        }
    }
    let known: Vec<Node> = nodes.values().cloned().collect();
    for sort in NodeField::ALL.map(Some).into_iter().chain([None]) {
        for descending in [false, true] {
            let first = NodeQuery::first(7, NodeFilter::default());
            check_pages(&*store, NodeQuery { sort, descending, ..first }, &known).await;
        }
    }
    check_counts(&*store, &known).await;
}

/// The counts by each field, of all nodes and of those of a project, are those of the nodes.
async fn check_counts<S: Store>(store: &S, nodes: &[Node]) {
    for project in [None, Some("a"), Some("ä"), Some("unknown")] {
        let filter =
            project.map_or_else(NodeFilter::default, |project| NodeFilter::default().within(project));
        let pairs = [
            [NodeField::ConductorGroup, NodeField::Uuid],
            [NodeField::ProvisionState, NodeField::Maintenance],
            [NodeField::CreatedAt, NodeField::Owner],
        ];
        let single = NodeField::ALL.map(|field| vec![field]);
        for fields in single.into_iter().chain(pairs.map(|pair| pair.to_vec())) {
            let mut expected: BTreeMap<Vec<FieldValue>, usize> = BTreeMap::new();
            for node in nodes.iter().filter(|node| filter.matches(node)) {
                let values = fields.iter().map(|field| field.read(node)).collect();
                *expected.entry(values).or_default() += 1;
            }
            let counts = store.count_nodes(&fields, project).await.unwrap();
            assert_eq!(counts, expected, "{fields:?} {project:?}");
        }
    }
}

/// More nodes than a store reads without asking which way is the shortest.
pub async fn pages_of_many_nodes<S: Store + 'static>(store: Arc<S>) {
    let mut random = Random::new(11);
    let mut creates = tokio::task::JoinSet::new();
    for number in 0..2500_u32 {
        let mut node = Node::enrolled(random.uuid(), "redfish", at(i64::from(number / 3)));
        node.next_wake_at = (number % 7 == 0).then(|| at(i64::from(number % 11)));
        node.resource_class = Some(if number % 50 == 49 { "rare" } else { "common" }.to_owned());
        node.maintenance = number % 2 == 0;
        node.retired = number % 2 == 1 || number % 625 == 0;
        node.other.insert("owner".into(), format!("p{}", number % 2).into());
        node.other.insert("shard".into(), if number < 1200 { "one" } else { "Two" }.into());
        node.other.insert("description".into(), format!("number {number}").into());
        let store = store.clone();
        // At once, so that a store can write many in one transaction.
        creates.spawn(async move { store.create_node(node, vec![]).await.unwrap() });
    }
    let nodes = creates.join_all().await;
    let equal =
        |fields: &[(NodeField, FieldValue)]| NodeFilter { equal: fields.to_vec(), ..NodeFilter::default() };
    let (maintenance, retired) =
        ((NodeField::Maintenance, FieldValue::Bool(true)), (NodeField::Retired, FieldValue::Bool(true)));
    let shards = |names: &[&str]| NodeFilter {
        one_of: vec![(NodeField::Shard, names.iter().map(|name| (*name).to_owned()).collect())],
        ..NodeFilter::default()
    };
    let filters = [
        NodeFilter::default(),
        equal(&[(NodeField::ResourceClass, "rare".into())]),
        // Both let half of the nodes pass, and together hardly any.
        equal(&[maintenance.clone(), retired]),
        equal(&[maintenance, (NodeField::ResourceClass, "rare".into())]),
        NodeFilter::default().within("p1"),
        shards(&["two"]),
        shards(&["one", "two"]),
        NodeFilter { description_contains: Some("BER 249".to_lowercase()), ..NodeFilter::default() },
        NodeFilter { search: Some("7f".to_owned()), ..NodeFilter::default() },
        NodeFilter { due_before: Some(at(5)), ..NodeFilter::default() },
    ];
    for filter in filters {
        for sort in [None, Some(NodeField::ResourceClass), Some(NodeField::Uuid), Some(NodeField::Fault)] {
            for descending in [false, true] {
                let first = NodeQuery::first(601, filter.clone());
                check_pages(&*store, NodeQuery { sort, descending, ..first }, &nodes).await;
            }
        }
    }
    // A store may answer sooner; it must not answer wrongly.
    let slow = NodeFilter { description_contains: Some("nowhere".to_owned()), ..NodeFilter::default() };
    let query = NodeQuery { time_limit: Duration::ZERO, ..NodeQuery::first(1, slow) };
    match store.node_page(query).await {
        Ok(page) => assert_eq!(page.nodes, []),
        Err(store::StoreError::TooSlow(limit)) => assert_eq!(limit, Duration::ZERO),
        Err(other) => panic!("{other:?}"),
    }
    assert_eq!(
        store.node_page(NodeQuery::first(1, NodeFilter::default())).await.unwrap().nodes,
        nodes_first(&nodes)
    );
}

fn nodes_first(nodes: &[Node]) -> Vec<Node> {
    NodeQuery::first(1, NodeFilter::default()).page_of(nodes).nodes
}
