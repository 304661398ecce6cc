//! How the nodes stand, kept in memory: one small entry a node, read again when the store's bell rings for it. A scrape then
//! reads no row, however many nodes there are.
//!
//! Every controller that shares a store counts all nodes of it, so that the nodes of a controller that is gone stay counted.

use crate::family::locked;
use crate::labels;
use crate::text::{Kind, Text};
use model::{Health, Node, ProvisionState, Timestamp};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{NodeFilter, NodeQuery, Place, Store, StoreError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long rings are collected before the nodes are read: one that changes often is read once.
const COLLECT: Duration = Duration::from_secs(1);
/// Before a read that failed is tried again.
const PAUSE: Duration = Duration::from_secs(5);
/// How often all nodes are read where rings of other controllers may have been lost with a connection.
const RECOUNT: Duration = Duration::from_secs(600);
/// Nodes of one page.
const PAGE: usize = 500;

/// What is kept of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    state: ProvisionState,
    since: Timestamp,
    maintenance: bool,
    retired: bool,
    health: Option<Health>,
    fault: Option<&'static str>,
}

impl Entry {
    fn of(node: &Node) -> Self {
        Self {
            state: node.provision_state,
            since: node.provision_updated_at.unwrap_or(node.created_at),
            maintenance: node.maintenance,
            retired: node.retired,
            health: node.health,
            fault: node.fault.as_deref().map(labels::fault),
        }
    }
}

/// The nodes of a store.
#[derive(Debug, Default)]
pub struct Census {
    nodes: Mutex<HashMap<Uuid, Entry>>,
}

impl Census {
    /// Follow the store until `stop`.
    pub async fn follow(&self, store: Arc<dyn Store>, stop: CancellationToken) {
        // Before the first read: what changes meanwhile is read again.
        let mut bell = store.bell().listen();
        let mut rung = HashSet::new();
        let mut recount_at = Some(Instant::now());
        loop {
            if recount_at.is_some_and(|at| at <= Instant::now()) {
                match self.count_all(&*store).await {
                    Ok(()) => recount_at = store.is_shared().then(|| Instant::now() + RECOUNT),
                    Err(error) => {
                        tracing::warn!(error = %error.chain(), "metrics: the nodes cannot be read; trying again");
                        recount_at = Some(Instant::now() + PAUSE);
                    }
                }
            }
            let next = async {
                match recount_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = next => {}
                heard = bell.recv() => rung.extend(heard),
            }
            if !rung.is_empty() {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(COLLECT) => {}
                }
                while let Ok(node) = bell.try_recv() {
                    rung.insert(node);
                }
                self.read(&*store, &mut rung).await;
            }
        }
    }

    /// Read these nodes again. Those that could not be read stay for the next time.
    async fn read(&self, store: &dyn Store, rung: &mut HashSet<Uuid>) {
        for node in std::mem::take(rung) {
            match store.shared_node(node).await {
                Ok(found) => drop(locked(&self.nodes).insert(node, Entry::of(&found))),
                Err(StoreError::NotFound { .. }) => drop(locked(&self.nodes).remove(&node)),
                Err(error) => {
                    tracing::debug!(node_uuid = %node, error = %error.chain(), "metrics: a node cannot be read");
                    rung.insert(node);
                }
            }
        }
    }

    /// Read all nodes, a page at a time.
    async fn count_all(&self, store: &dyn Store) -> Result<(), StoreError> {
        let mut found = HashMap::new();
        let mut after = None;
        loop {
            let query = NodeQuery { after, ..NodeQuery::first(PAGE, NodeFilter::default()) };
            let page = store.node_page_once(query).await?;
            found.extend(page.nodes.iter().map(|node| (node.uuid, Entry::of(node))));
            after = page.nodes.last().map(|node| Place::of_node(node, None));
            if !page.more {
                break;
            }
        }
        *locked(&self.nodes) = found;
        Ok(())
    }

    /// Write how they stand.
    pub fn write(&self, text: &mut Text, now: Timestamp) {
        let nodes = locked(&self.nodes);
        let mut states: BTreeMap<(ProvisionState, bool), (u64, Duration)> = BTreeMap::new();
        for state in ProvisionState::ALL {
            states.extend([true, false].map(|maintenance| ((state, maintenance), Default::default())));
        }
        let (mut faults, mut retired) = (BTreeMap::new(), 0_u64);
        let mut health = Health::ALL.map(|health| (health, 0_u64));
        for node in nodes.values() {
            let (count, oldest) = states.entry((node.state, node.maintenance)).or_default();
            *count += 1;
            *oldest = (*oldest).max(now.since(node.since));
            retired += u64::from(node.retired);
            if let Some(fault) = node.fault {
                *faults.entry(fault).or_insert(0_u64) += 1;
            }
            health.iter_mut().filter(|(of, _)| node.health == Some(*of)).for_each(|(_, count)| *count += 1);
        }
        drop(nodes);
        let words = |(state, maintenance): (ProvisionState, bool)| {
            [("provision_state", state.as_str()), ("maintenance", if maintenance { "true" } else { "false" })]
        };
        text.family(
            "anneal_nodes",
            Kind::Gauge,
            "Nodes by provision state, and whether they are in maintenance.",
        );
        for (of, (count, _)) in &states {
            text.sample("anneal_nodes", &words(*of), count);
        }
        let oldest = "anneal_nodes_longest_in_state_seconds";
        text.family(
            oldest,
            Kind::Gauge,
            "Time since the node that is in the state for the longest time entered it.",
        );
        for (of, (_, age)) in states.iter().filter(|(_, (count, _))| *count > 0) {
            text.sample(oldest, &words(*of), age.as_secs_f64());
        }
        text.gauge("anneal_nodes_retired", "Nodes that are retired.", retired);
        text.family("anneal_nodes_by_fault", Kind::Gauge, "Nodes that a fault put into maintenance.");
        for (fault, count) in &faults {
            text.sample("anneal_nodes_by_fault", &[("fault", fault)], count);
        }
        text.family(
            "anneal_nodes_by_health",
            Kind::Gauge,
            "Nodes by the health that their BMC reports, where it does.",
        );
        for (health, count) in health {
            text.sample("anneal_nodes_by_health", &[("health", health.as_str())], count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use crate::metered_store::MeteredStore;
    use store::memory::MemoryStore;

    const NODES: u64 = 1_200;

    fn node(number: u128) -> Node {
        Node::enrolled(Uuid::from_u128(number), "fake-hardware", Timestamp(1_000_000))
    }

    /// A store of many nodes, and what counts its calls.
    async fn many() -> (Arc<dyn Store>, Arc<Counts>) {
        let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
        for number in 0..NODES {
            inner.create_node(node(number.into()), Vec::new()).await.unwrap();
        }
        let counts = Arc::new(Counts::new());
        (Arc::new(MeteredStore { store: inner, counts: counts.clone() }), counts)
    }

    /// How often each operation of the store was called.
    fn calls(counts: &Counts) -> Vec<String> {
        let mut text = Text::default();
        counts.store_calls.write(&mut text);
        let text = text.into_string();
        text.lines().filter(|line| line.contains("_count{")).map(str::to_owned).collect()
    }

    fn shown(census: &Census) -> String {
        let mut text = Text::default();
        census.write(&mut text, Timestamp(61_000_000));
        text.into_string()
    }

    fn counted(state: &str, count: u64) -> String {
        format!("anneal_nodes{{provision_state=\"{state}\",maintenance=\"false\"}} {count}\n")
    }

    /// Wait, in virtual time, until the census shows this.
    async fn until(census: &Census, line: &str) {
        for _ in 0..100 {
            if shown(census).contains(line) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{line} is not in {}", shown(census));
    }

    #[tokio::test(start_paused = true)]
    async fn a_scrape_asks_the_store_nothing_and_a_change_costs_one_read() {
        let (store, counts) = many().await;
        let (census, stop) = (Arc::new(Census::default()), CancellationToken::new());
        let (followed, stopped) = (census.clone(), stop.clone());
        let following = store.clone();
        let task = tokio::spawn(async move { followed.follow(following, stopped).await });
        until(&census, &counted("enroll", NODES)).await;
        let pages = "anneal_store_call_duration_seconds_count{operation=\"node_page_once\"} 3";
        assert_eq!(calls(&counts), [pages], "pages of 500");
        for _ in 0..10 {
            let text = shown(&census);
            let age = "anneal_nodes_longest_in_state_seconds{provision_state=\"enroll\",maintenance=\"false\"} 60\n";
            assert!(text.contains(age), "{text}");
        }
        assert_eq!(calls(&counts), [pages], "scrapes read nothing");

        // One is changed several times, one is deleted, one is new.
        let mut changed = store.node(Uuid::from_u128(7)).await.unwrap();
        for _ in 0..3 {
            changed.enter(ProvisionState::Manageable, None, Timestamp(31_000_000));
            changed.health = Some(Health::Critical);
            changed = store.update_node(changed, Vec::new(), None).await.unwrap();
        }
        store.delete_node(Uuid::from_u128(8), 1, vec![]).await.unwrap();
        store.create_node(node(u128::from(NODES)), Vec::new()).await.unwrap();
        until(&census, &counted("manageable", 1)).await;
        let text = shown(&census);
        assert!(text.contains(&counted("enroll", NODES - 1)), "{text}");
        assert!(text.contains("anneal_nodes_by_health{health=\"Critical\"} 1\n"), "{text}");
        let reads = "anneal_store_call_duration_seconds_count{operation=\"shared_node\"} 3".to_owned();
        assert!(calls(&counts).contains(&reads), "{:?}", calls(&counts));
        stop.cancel();
        task.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn where_a_ring_can_be_lost_all_are_read_again() {
        let shared: Arc<dyn Store> = Arc::new(MemoryStore::shared());
        let census = Arc::new(Census::default());
        let (followed, following) = (census.clone(), shared.clone());
        let task = tokio::spawn(async move { followed.follow(following, CancellationToken::new()).await });
        until(&census, &counted("enroll", 0)).await;
        shared.create_node(node(1), Vec::new()).await.unwrap();
        until(&census, &counted("enroll", 1)).await;
        // As if the ring had been lost.
        locked(&census.nodes).clear();
        tokio::time::sleep(RECOUNT).await;
        until(&census, &counted("enroll", 1)).await;
        task.abort();
    }
}
