//! Which pass may begin now. There are places for a limited number of passes; a slow BMC, or the many nodes of one project,
//! must not take all of them.

use crate::settings::Settings;
use model::Node;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use uuid::Uuid;

/// Keys of `driver_info` that name a BMC.
const ADDRESSES: [&str; 2] = ["redfish_address", "ipmi_address"];

/// What passes are counted by. Nodes without a project belong to the operator, and nodes without an address, or that
/// were not read yet, to no BMC: only the total limits them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Share {
    bmc: Option<String>,
    project: Option<String>,
}

impl Share {
    /// That of a node.
    pub fn of(node: &Node) -> Self {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let address = ADDRESSES.iter().find_map(|key| text(node.driver_info.get(*key)));
        let project = text(node.other.get("lessee")).or_else(|| text(node.other.get("owner")));
        Self { bmc: address.as_deref().map(host), project }
    }
}

/// The host of an address, with or without scheme, port and path.
fn host(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        // More than one colon is an IPv6 address without brackets.
        None if authority.matches(':').count() == 1 => authority.split(':').next().unwrap_or_default(),
        None => authority,
    };
    host.to_ascii_lowercase()
}

/// Most passes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceLimits {
    /// In all.
    pub total: usize,
    /// With one BMC.
    pub per_bmc: usize,
}

impl PlaceLimits {
    /// Those of the settings.
    pub fn of(settings: &Settings) -> Self {
        Self { total: settings.max_passes.max(1), per_bmc: settings.max_passes_per_bmc.max(1) }
    }
}

/// Passes in progress.
#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_bmc: HashMap<String, usize>,
    by_project: HashMap<String, usize>,
}

impl Taken {
    fn count(map: &HashMap<String, usize>, key: Option<&String>) -> usize {
        key.and_then(|key| map.get(key)).copied().unwrap_or_default()
    }

    /// Whether one more pass may begin. A project may have at most half of the places that others leave: however many
    /// projects want all they can get, there is a place for the next one.
    fn admits(&self, share: &Share, limits: PlaceLimits) -> bool {
        if self.all >= limits.total {
            return false;
        }
        if Self::count(&self.by_bmc, share.bmc.as_ref()) >= limits.per_bmc {
            return false;
        }
        let own = Self::count(&self.by_project, share.project.as_ref());
        let left_by_others = limits.total - (self.all - own);
        share.project.is_none() || own < left_by_others.div_ceil(2)
    }

    fn add(&mut self, share: &Share) {
        self.all += 1;
        for (map, key) in [(&mut self.by_bmc, &share.bmc), (&mut self.by_project, &share.project)] {
            if let Some(key) = key {
                *map.entry(key.clone()).or_default() += 1;
            }
        }
    }

    fn remove(&mut self, share: &Share) {
        self.all -= 1;
        for (map, key) in [(&mut self.by_bmc, &share.bmc), (&mut self.by_project, &share.project)] {
            if let Some(key) = key
                && let Some(count) = map.get_mut(key)
            {
                *count -= 1;
                if *count == 0 {
                    map.remove(key);
                }
            }
        }
    }
}

/// The places.
pub struct Places {
    limits: PlaceLimits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: Taken,
    /// Passes that wait, the first that came first.
    waiting: VecDeque<(Share, oneshot::Sender<Place>)>,
    /// The share of each node, as of its last pass. A cache: a node that is not in it is read by that pass.
    shares: HashMap<Uuid, Share>,
}

/// The place of one pass; free again when dropped.
pub struct Place {
    places: Arc<Places>,
    share: Share,
}

impl Places {
    /// All free.
    pub fn new(limits: PlaceLimits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wait for a place for a pass over `node`.
    pub async fn enter(self: &Arc<Self>, node: Uuid) -> Place {
        let place = {
            let mut state = self.state();
            let share = state.shares.get(&node).cloned().unwrap_or_default();
            if state.taken.admits(&share, self.limits) {
                state.taken.add(&share);
                return Place { places: self.clone(), share };
            }
            let (give, place) = oneshot::channel();
            state.waiting.push_back((share, give));
            place
        };
        place.await.expect("the queue outlives its waiters")
    }

    /// Note the share of a node, as its pass has read it.
    pub fn note(&self, node: Uuid, share: Share) {
        self.state().shares.insert(node, share);
    }

    /// Forget a node that is gone.
    pub fn forget(&self, node: Uuid) {
        self.state().shares.remove(&node);
    }

    fn give_back(self: &Arc<Self>, share: &Share) {
        let mut begun = Vec::new();
        {
            let mut state = self.state();
            state.taken.remove(share);
            let State { taken, waiting, .. } = &mut *state;
            let mut at = 0;
            while let Some((share, _)) = waiting.get(at).filter(|_| taken.all < self.limits.total) {
                if taken.admits(share, self.limits) {
                    taken.add(share);
                    begun.extend(waiting.remove(at));
                } else {
                    at += 1;
                }
            }
        }
        for (share, give) in begun {
            // If the waiter has gone, its place comes back as it is dropped.
            let _ = give.send(Place { places: self.clone(), share });
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.give_back(&self.share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use model::Timestamp;

    fn share(bmc: &str, project: &str) -> Share {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Share { bmc: some(bmc), project: some(project) }
    }

    fn places(total: usize, per_bmc: usize) -> Arc<Places> {
        Places::new(PlaceLimits { total, per_bmc })
    }

    /// As many places as there are now for new nodes of this share.
    fn fill(places: &Arc<Places>, first: u128, share: &Share) -> Vec<Place> {
        let mut taken = Vec::new();
        for number in first..first + 1000 {
            let node = Uuid::from_u128(number);
            places.note(node, share.clone());
            match places.enter(node).now_or_never() {
                Some(place) => taken.push(place),
                None => break,
            }
        }
        taken
    }

    #[test]
    fn the_bmc_and_the_project_of_a_node_are_read() {
        let mut node = Node::enrolled(Uuid::nil(), "redfish", Timestamp(0));
        assert_eq!(Share::of(&node), Share::default());
        node.other.insert("owner".into(), "p1".into());
        for (address, expected) in [
            ("https://BMC7.example:8443/redfish", "bmc7.example"),
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7:623", "192.0.2.7"),
            ("https://[2001:db8::7]:443", "2001:db8::7"),
            ("2001:db8::7", "2001:db8::7"),
        ] {
            node.driver_info.insert("redfish_address".into(), address.into());
            assert_eq!(Share::of(&node), share(expected, "p1"), "{address}");
        }
        node.other.insert("lessee".into(), "p2".into());
        assert_eq!(Share::of(&node).project.as_deref(), Some("p2"), "who uses it");
    }

    #[test]
    fn a_slow_bmc_takes_only_its_own_places() {
        let places = places(128, 8);
        let slow = fill(&places, 0, &share("slow", ""));
        assert_eq!(slow.len(), 8);
        assert_eq!(fill(&places, 5000, &share("other", "")).len(), 8);
        let unknown = Uuid::from_u128(9999);
        assert!(places.enter(unknown).now_or_never().is_some(), "a node that was not read yet");
    }

    #[test]
    fn however_many_projects_take_what_they_can_there_is_a_place_for_the_next() {
        let places = places(128, 128);
        let mut held = Vec::new();
        let mut sizes = Vec::new();
        for project in 0..7_u32 {
            let taken = fill(&places, u128::from(project) * 10_000, &share("", &format!("p{project}")));
            sizes.push(taken.len());
            held.push(taken);
        }
        assert_eq!(sizes, [64, 32, 16, 8, 4, 2, 1]);
        // The operator's own nodes are limited by the total alone.
        assert_eq!(fill(&places, 900_000, &share("", "")).len(), 1);
    }

    #[tokio::test]
    async fn who_waits_begins_as_soon_as_a_place_is_free_for_it() {
        let places = places(2, 1);
        for (node, bmc) in [(1, "a"), (2, "a"), (3, "b"), (4, "c")] {
            places.note(Uuid::from_u128(node), share(bmc, ""));
        }
        let first = places.enter(Uuid::from_u128(1)).await;
        let mut second = Box::pin(places.enter(Uuid::from_u128(2)));
        assert!(second.as_mut().now_or_never().is_none(), "its BMC is in use");
        let third = places.enter(Uuid::from_u128(3)).await;
        let mut fourth = Box::pin(places.enter(Uuid::from_u128(4)));
        assert!(fourth.as_mut().now_or_never().is_none(), "all are taken");
        drop(third);
        let fourth = fourth.await;
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        drop((second.await, fourth));
        let state = places.state();
        assert_eq!(state.taken.all, 0);
        assert!(state.taken.by_bmc.is_empty() && state.waiting.is_empty());
    }

    #[tokio::test]
    async fn a_waiter_that_gave_up_keeps_no_place() {
        let places = places(1, 1);
        let node = Uuid::from_u128(1);
        let held = places.enter(node).await;
        let mut waiter = Box::pin(places.enter(node));
        assert!(waiter.as_mut().now_or_never().is_none());
        drop(waiter);
        drop(held);
        assert!(places.enter(node).now_or_never().is_some());
    }
}
