//! How many connections there may be, in all and per address, and which one is closed for a new one.

use crate::activity::Activity;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// At most one warning in this time says that connections are closed or refused.
const WARNING_PAUSE: Duration = Duration::from_secs(60);

/// Most connections of one class of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// In all.
    pub total: usize,
    /// From one address; see [`address_key`].
    pub per_address: usize,
}

/// The address that connections and requests are counted under: an IPv6 client owns a /64, an IPv4 client one address.
pub fn address_key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) >> 64 << 64)),
    }
}

/// The connections of one class of clients: boot, agents or operators. Several listeners may share it.
pub struct Places {
    name: &'static str,
    limits: Limits,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Default)]
struct State {
    next: u64,
    held: BTreeMap<u64, Held>,
    addresses: HashMap<IpAddr, usize>,
    warned: Option<Instant>,
}

#[derive(Clone)]
struct Held {
    key: IpAddr,
    activity: Arc<Activity>,
    close: CancellationToken,
}

/// Why there is no place: every connection that counts is being answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The address has its most connections.
    Address,
    /// The class has.
    Class,
}

/// The place of one connection; dropping it frees the place.
pub(crate) struct Place {
    at: Mutex<(Arc<Places>, u64)>,
}

impl Places {
    /// Places for a class of clients with this name, which appears in the log.
    pub fn new(name: &'static str, limits: Limits) -> Arc<Self> {
        Arc::new(Self { name, limits, state: Mutex::default(), freed: Notify::new() })
    }

    /// Most connections of the class.
    pub(crate) fn total(&self) -> usize {
        self.limits.total
    }

    /// Connections that hold a place.
    pub fn in_use(&self) -> usize {
        self.state().held.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from `address`. If there is none left, the connection that has waited longest for its
    /// client (of that address, or of all) is closed through its token and loses its place at once.
    pub(crate) fn enter(
        self: &Arc<Self>,
        address: IpAddr,
        activity: Arc<Activity>,
        close: CancellationToken,
    ) -> Result<Place, Full> {
        let held = Held { key: address_key(address), activity, close };
        let id = self.take(held)?;
        Ok(Place { at: Mutex::new((self.clone(), id)) })
    }

    fn take(&self, held: Held) -> Result<u64, Full> {
        let mut state = self.state();
        let of_address = state.addresses.get(&held.key).copied().unwrap_or_default();
        if of_address >= self.limits.per_address && !state.evict(Some(held.key)) {
            state.warn(self.name, self.limits, "refused a connection: its address has its most");
            return Err(Full::Address);
        }
        if state.held.len() >= self.limits.total {
            if !state.evict(None) {
                state.warn(self.name, self.limits, "connections wait: the most are open and busy");
                return Err(Full::Class);
            }
            state.warn(self.name, self.limits, "closed the connection that waited longest for its client");
        }
        let id = state.next;
        state.next += 1;
        *state.addresses.entry(held.key).or_default() += 1;
        state.held.insert(id, held);
        Ok(id)
    }

    /// Waits until a place may have become free.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    fn release(&self, id: u64) -> Option<Held> {
        let held = self.state().remove(id);
        self.freed.notify_one();
        held
    }
}

impl State {
    fn remove(&mut self, id: u64) -> Option<Held> {
        let held = self.held.remove(&id)?;
        if let Some(count) = self.addresses.get_mut(&held.key) {
            *count -= 1;
            if *count == 0 {
                self.addresses.remove(&held.key);
            }
        }
        Some(held)
    }

    /// Close the connection that has waited longest for its client; false if none waits.
    fn evict(&mut self, key: Option<IpAddr>) -> bool {
        let counted = self.held.iter().filter(|(_, held)| key.is_none_or(|key| held.key == key));
        let waiting = counted.filter_map(|(id, held)| Some((held.activity.waiting_since()?, *id)));
        let Some((_, id)) = waiting.min() else { return false };
        if let Some(held) = self.remove(id) {
            held.close.cancel();
        }
        true
    }

    fn warn(&mut self, class: &str, limits: Limits, what: &str) {
        if self.warned.is_none_or(|warned| warned.elapsed() >= WARNING_PAUSE) {
            self.warned = Some(Instant::now());
            let Limits { total, per_address } = limits;
            tracing::warn!(class, total, per_address, open = self.held.len(), "connections: {what}");
        }
    }
}

impl Place {
    /// Count this connection among those of `places` instead, if there is room.
    pub(crate) fn change_to(&self, places: &Arc<Places>) {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&at.0, places) {
            return;
        }
        let held = at.0.state().held.get(&at.1).cloned();
        if let Some(Ok(id)) = held.map(|held| places.take(held)) {
            at.0.release(at.1);
            *at = (places.clone(), id);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let at = self.at.get_mut().unwrap_or_else(PoisonError::into_inner);
        at.0.release(at.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::Phase;

    struct Client {
        place: Result<Place, Full>,
        activity: Arc<Activity>,
        close: CancellationToken,
    }

    fn client(places: &Arc<Places>, address: &str) -> Client {
        let (activity, close) = (Arc::new(Activity::new()), CancellationToken::new());
        let place = places.enter(address.parse().unwrap(), activity.clone(), close.clone());
        Client { place, activity, close }
    }

    fn places(total: usize, per_address: usize) -> Arc<Places> {
        Places::new("test", Limits { total, per_address })
    }

    #[test]
    fn a_full_address_loses_its_longest_waiting_connection() {
        let places = places(8, 2);
        let other = client(&places, "192.0.2.2");
        let (first, second) = (client(&places, "192.0.2.1"), client(&places, "192.0.2.1"));
        let third = client(&places, "192.0.2.1");
        assert!(third.place.is_ok() && first.close.is_cancelled());
        assert!(!second.close.is_cancelled() && !other.close.is_cancelled());
        assert_eq!(places.in_use(), 3);
        drop(first);
        assert_eq!(places.in_use(), 3, "its place was given away already");
    }

    #[test]
    fn a_connection_that_is_answered_is_never_closed_for_another() {
        let places = places(3, 2);
        let (first, second) = (client(&places, "192.0.2.1"), client(&places, "192.0.2.1"));
        first.activity.enter(Phase::Answering);
        second.activity.enter(Phase::Answering);
        assert_eq!(client(&places, "192.0.2.1").place.err(), Some(Full::Address));
        let third = client(&places, "192.0.2.2");
        third.activity.enter(Phase::Answering);
        assert_eq!(client(&places, "192.0.2.3").place.err(), Some(Full::Class));
        third.activity.enter(Phase::Idle);
        assert!(client(&places, "192.0.2.3").place.is_ok() && third.close.is_cancelled());
        assert!(!first.close.is_cancelled() && !second.close.is_cancelled());
    }

    #[test]
    fn a_place_changes_its_class_if_there_is_room() {
        let (agents, operators) = (places(2, 2), places(1, 1));
        let (first, second) = (client(&agents, "192.0.2.1"), client(&agents, "192.0.2.1"));
        first.activity.enter(Phase::Answering);
        let place = first.place.as_ref().unwrap();
        place.change_to(&operators);
        place.change_to(&operators);
        assert_eq!((agents.in_use(), operators.in_use()), (1, 1));
        second.place.as_ref().unwrap().change_to(&operators);
        assert_eq!((agents.in_use(), operators.in_use()), (1, 1), "the only place is taken");
        drop((first, second));
        assert_eq!((agents.in_use(), operators.in_use()), (0, 0));
        assert!(agents.state().addresses.is_empty() && operators.state().addresses.is_empty());
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        let key = |text: &str| address_key(text.parse().unwrap()).to_string();
        assert_eq!(key("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(key("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!((key("127.0.0.1"), key("127.9.8.7")), ("127.0.0.1".to_owned(), "127.9.8.7".to_owned()));
    }
}
