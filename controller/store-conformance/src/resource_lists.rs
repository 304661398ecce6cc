//! Lists of resources: of random ones, every random query gives the same pages as [`ResourceQuery::page_of`] of all.

use super::random::Random;
use super::samples::{at, create, update};
use model::{Node, Resource, ResourceKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{FieldValue, NodeField, Place, ResourceField, ResourceFilter, ResourceQuery, Store};
use uuid::Uuid;

/// Few, so that many share one.
const WORDS: [&str; 5] = ["a", "B", "b", "Ä", ""];
/// Fields that lists know.
const FIELDS: [&str; 6] = ["address", "portgroup_uuid", "owner", "resource_class", "state", "description"];

fn change(random: &mut Random, resource: &mut Resource, nodes: &[Node]) {
    resource.name =
        random.maybe(|random| format!("{}-{}", random.one_of(&WORDS), random.below(1_000_000_000)));
    // An allocation goes with the instance of its node.
    resource.node = match resource.kind {
        ResourceKind::Allocation => None,
        _ => random.maybe(|random| random.one_of(nodes).uuid),
    };
    for name in FIELDS {
        resource.fields.remove(name);
        if let Some(word) = random.maybe(|random| *random.one_of(&WORDS)) {
            resource.fields.insert(name.to_owned(), word.into());
        }
    }
    if random.below(20) == 0 {
        resource.fields.insert((*random.one_of(&FIELDS)).to_owned(), 1.into());
    }
}

fn query(random: &mut Random, kind: ResourceKind, known: &[Resource]) -> ResourceQuery {
    let mut filter = ResourceFilter::all(kind);
    for _ in 0..random.below(3) {
        let field = *random.one_of(&ResourceField::ALL);
        let value = match random.below(8) {
            0 => FieldValue::Null,
            1 => (*random.one_of(&WORDS)).into(),
            _ => field.read(random.one_of(known)),
        };
        filter = filter.with(field, value);
    }
    if random.below(3) == 0 {
        let field = *random.one_of(&[NodeField::Shard, NodeField::ConductorGroup]);
        let words = (0..random.below(3)).map(|_| random.one_of(&WORDS).to_lowercase()).collect();
        filter.node_one_of = Some((field, words));
    }
    filter.project = (random.below(3) == 0).then(|| (*random.one_of(&WORDS)).to_owned());
    filter.description_contains = (random.below(6) == 0).then(|| random.one_of(&WORDS).to_lowercase());
    let sort = random.maybe(|random| *random.one_of(&ResourceField::ALL));
    let after = (random.below(3) == 0).then(|| Place::of_resource(random.one_of(known), sort));
    let descending = random.below(2) == 0;
    ResourceQuery { sort, descending, after, ..ResourceQuery::first(1 + random.below(9), filter) }
}

/// All pages, one after the other.
async fn check_pages<S: Store>(
    store: &S,
    mut query: ResourceQuery,
    known: &[Resource],
    nodes: &BTreeMap<Uuid, Node>,
) {
    loop {
        let page = store.resource_page(query.clone()).await.unwrap();
        assert_eq!(page, query.page_of(known, |uuid| nodes.get(&uuid)), "{query:#?}");
        let Some(last) = page.resources.last().filter(|_| page.more) else { return };
        query.after = Some(Place::of_resource(last, query.sort));
    }
}

async fn nodes<S: Store>(store: &S, random: &mut Random) -> Vec<Node> {
    let mut nodes = Vec::new();
    for _ in 0..30 {
        let mut node = Node::enrolled(random.uuid(), "redfish", at(0));
        for name in ["owner", "lessee", "shard", "conductor_group"] {
            if let Some(word) = random.maybe(|random| *random.one_of(&WORDS)) {
                node.other.insert(name.to_owned(), word.into());
            }
        }
        nodes.push(store.create_node(node, vec![]).await.unwrap());
    }
    nodes
}

pub async fn a_page_is_that_of_all_resources<S: Store>(store: Arc<S>) {
    let mut random = Random::new(3);
    let nodes = nodes(&*store, &mut random).await;
    let by_uuid: BTreeMap<_, _> = nodes.iter().map(|node| (node.uuid, node.clone())).collect();
    let mut known = Vec::new();
    for number in 0..400 {
        let kind = *random.one_of(&ResourceKind::ALL);
        let created = i64::try_from(random.below(12)).unwrap();
        let mut resource = Resource::new(kind, random.uuid(), at(created));
        change(&mut random, &mut resource, &nodes);
        let mut resource = create(&*store, resource).await.unwrap();
        if number % 3 == 0 {
            change(&mut random, &mut resource, &nodes);
            resource = update(&*store, resource).await.unwrap();
        }
        known.push(resource);
    }
    for _ in 0..400 {
        let kind = *random.one_of(&ResourceKind::ALL);
        check_pages(&*store, query(&mut random, kind, &known), &known, &by_uuid).await;
    }
    for kind in ResourceKind::ALL {
        for sort in ResourceField::ALL.map(Some).into_iter().chain([None]) {
            for descending in [false, true] {
                let first = ResourceQuery::first(7, ResourceFilter::all(kind));
                check_pages(&*store, ResourceQuery { sort, descending, ..first }, &known, &by_uuid).await;
            }
        }
    }
}

/// More ports than a store reads without asking which way is the shortest.
pub async fn pages_of_many_resources<S: Store + 'static>(store: Arc<S>) {
    let mut random = Random::new(5);
    let nodes = nodes(&*store, &mut random).await;
    let by_uuid: BTreeMap<_, _> = nodes.iter().map(|node| (node.uuid, node.clone())).collect();
    let mut creates = tokio::task::JoinSet::new();
    for number in 0..2200_i64 {
        let mut port = Resource::new(ResourceKind::Port, random.uuid(), at(number / 3));
        port.node = Some(random.one_of(&nodes).uuid);
        port.fields.insert("address".into(), format!("{}", number % 7).into());
        let store = store.clone();
        creates.spawn(async move { create(&*store, port).await.unwrap() });
    }
    let known = creates.join_all().await;
    let all = || ResourceFilter::all(ResourceKind::Port);
    let filters = [
        all(),
        all().with(ResourceField::Address, "3".into()),
        ResourceFilter::of_node(ResourceKind::Port, nodes[7].uuid),
        ResourceFilter { project: Some("a".to_owned()), ..all() },
        ResourceFilter { node_one_of: Some((NodeField::Shard, vec!["b".to_owned()])), ..all() },
    ];
    for filter in filters {
        for sort in [None, Some(ResourceField::Address), Some(ResourceField::Node)] {
            let first = ResourceQuery::first(701, filter.clone());
            check_pages(&*store, ResourceQuery { sort, ..first }, &known, &by_uuid).await;
        }
    }
}
