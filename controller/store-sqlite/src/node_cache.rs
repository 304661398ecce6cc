//! Nodes, their contacts and leases as they are committed, so that reads of them neither ask the database nor parse anything.
//! It holds at most so many bytes; what was not asked for lately goes first.
//!
//! ```text
//!   writer   ── begin(written) ─▶ entries go; nothing of them is kept ── COMMIT ── committed() ─▶ new entries ── bell, answers
//!   readers  ── get() ─▶ what is committed now
//!            ── reading() ── snapshot ── Reading::get ─▶ as old as the snapshot, or else the row, and then Reading::keep
//! ```
//!
//! **Why a hit is right.** Only this process writes the file (`lock.rs`), and only its writer thread. It names what a
//! transaction wrote before the transaction commits; from then until the outcome is known, the cache has no entry of that and
//! takes none. So an entry is never older than the last commit that changed its row, and never newer either.
//!
//! A read that finds no entry takes the time of the cache, which counts commits, before its snapshot begins. What it reads is kept
//! only if the node was not written since then, so an old snapshot cannot put an old value in the place of a new one. Each
//! entry has the time from which on it is known to be right. A snapshot that has begun uses only entries that are at least as old
//! as the time it took, and that are still there: they were right at its moment, and all that it returns is of one moment.

use crate::written::{LeaseState, Written};
use model::Node;
use model::agent::Contact;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use uuid::Uuid;

/// Most nodes of which it is remembered when they were written.
const REMEMBERED: usize = 4096;
/// Bytes that an entry takes besides its values, about.
const ENTRY: usize = 400;
/// The time of a write whose commit is under way.
const NOW: u64 = u64::MAX;

/// What is known of a node.
#[derive(Default)]
pub struct Entry {
    node: Option<Kept<Arc<Node>>>,
    contact: Option<Kept<Arc<Contact>>>,
    lease: Option<Kept<LeaseState>>,
    /// Which item of the queue is its own.
    stamp: u64,
    /// Whether it was asked for since that item was added.
    used: bool,
}

/// A value in an entry.
pub struct Kept<T> {
    value: T,
    since: u64,
    bytes: usize,
}

/// A value of which a node has one.
pub trait Cached: Clone {
    /// Its place.
    fn place(entry: &mut Entry) -> &mut Option<Kept<Self>>;
}

impl Cached for Arc<Node> {
    fn place(entry: &mut Entry) -> &mut Option<Kept<Self>> {
        &mut entry.node
    }
}

impl Cached for Arc<Contact> {
    fn place(entry: &mut Entry) -> &mut Option<Kept<Self>> {
        &mut entry.contact
    }
}

impl Cached for LeaseState {
    fn place(entry: &mut Entry) -> &mut Option<Kept<Self>> {
        &mut entry.lease
    }
}

/// The bytes that a value takes in memory whose document is this, about: itself, texts, and a block of a B-tree for each object with
/// members in it.
pub fn bytes_of<T>(doc: &[u8]) -> usize {
    let objects = doc.windows(2).filter(|pair| pair == b"{\"").count().saturating_sub(1);
    size_of::<T>() + doc.len() + 650 * objects
}

/// The cache of one database.
pub struct NodeCache(Mutex<State>);

#[derive(Default)]
struct State {
    limit: usize,
    bytes: usize,
    /// Counts the begins and ends of commits.
    time: u64,
    entries: HashMap<Uuid, Entry>,
    /// In which order entries go; items of entries that are gone are passed over.
    queue: VecDeque<(Uuid, u64)>,
    stamps: u64,
    /// When nodes were written; [`NOW`]: their commit is under way.
    written: HashMap<Uuid, u64>,
    /// When the last write was whose node is not remembered in `written`.
    others_written: u64,
}

impl NodeCache {
    /// An empty cache that takes so many bytes, about. 0: it keeps nothing.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { limit, ..State::default() })))
    }

    /// Take so many bytes from now on.
    pub fn limit(&self, bytes: usize) {
        let mut state = self.state();
        state.limit = bytes;
        state.shrink();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What is committed now, if it is known.
    pub fn get<T: Cached>(&self, node: Uuid) -> Option<T> {
        self.state().get(node, NOW)
    }

    /// A node and its contact as they are committed now.
    pub fn node_and_contact(&self, node: Uuid) -> Option<(Arc<Node>, Arc<Contact>)> {
        let mut state = self.state();
        Some((state.get(node, NOW)?, state.get(node, NOW)?))
    }

    /// A read whose snapshot begins after this.
    pub fn reading(self: &Arc<Self>) -> Reading {
        Reading { since: self.state().time, cache: self.clone() }
    }

    /// A transaction that wrote this is about to commit.
    pub fn begin(&self, written: Vec<Written>) -> Commit<'_> {
        if !written.is_empty() {
            let mut state = self.state();
            state.time += 1;
            written.iter().for_each(|written| state.forget(written));
        }
        Commit { cache: self, written, committed: false }
    }

    /// Bytes that are taken, about.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.state().bytes
    }
}

/// A read of the database, and what it may use of the cache.
pub struct Reading {
    cache: Arc<NodeCache>,
    since: u64,
}

impl Reading {
    /// What the snapshot has, if it is known. Only once the snapshot has begun: something was read from it.
    pub fn get<T: Cached>(&self, node: Uuid) -> Option<T> {
        self.cache.state().get(node, self.since)
    }

    /// Keep what the snapshot has, unless the node was written meanwhile.
    pub fn keep<T: Cached>(&self, node: Uuid, value: T, bytes: usize) {
        let mut state = self.cache.state();
        let written = state.written.get(&node).copied().unwrap_or_default();
        if written.max(state.others_written) <= self.since {
            state.put(node, Kept { value, since: self.since, bytes });
        }
    }
}

/// A commit under way. Unless it is said to be `committed`, the database has what it had, and the cache nothing of it.
pub struct Commit<'a> {
    cache: &'a NodeCache,
    written: Vec<Written>,
    committed: bool,
}

impl Commit<'_> {
    /// It succeeded: what was written is what is committed.
    pub fn committed(mut self) {
        self.committed = true;
    }
}

impl Drop for Commit<'_> {
    fn drop(&mut self) {
        let written = std::mem::take(&mut self.written);
        if written.is_empty() {
            return;
        }
        let mut state = self.cache.state();
        state.time += 1;
        for written in written {
            state.end(written, self.committed);
        }
        if state.written.len() > REMEMBERED {
            state.written.clear();
            state.others_written = state.time;
        }
    }
}

impl State {
    fn get<T: Cached>(&mut self, node: Uuid, since: u64) -> Option<T> {
        let entry = self.entries.get_mut(&node)?;
        let value = T::place(entry).as_ref().filter(|kept| kept.since <= since)?.value.clone();
        entry.used = true;
        Some(value)
    }

    fn put<T: Cached>(&mut self, node: Uuid, kept: Kept<T>) {
        let bytes = kept.bytes;
        let entry = self.entries.entry(node).or_insert_with(|| {
            self.stamps += 1;
            self.bytes += ENTRY;
            self.queue.push_back((node, self.stamps));
            Entry { stamp: self.stamps, ..Entry::default() }
        });
        let before = T::place(entry).replace(kept).map_or(0, |before| before.bytes);
        self.bytes = self.bytes + bytes - before;
        self.shrink();
    }

    /// Remove what a transaction wrote.
    fn forget(&mut self, written: &Written) {
        let Some(node) = written.node() else {
            (self.bytes, self.others_written) = (0, NOW);
            self.entries.clear();
            return self.queue.clear();
        };
        self.written.insert(node, NOW);
        match written {
            Written::Node(..) => self.drop_value::<Arc<Node>>(node),
            Written::Contact(..) => self.drop_value::<Arc<Contact>>(node),
            Written::Lease(..) => self.drop_value::<LeaseState>(node),
            Written::Unknown(_) | Written::All => self.remove(node),
        }
    }

    fn end(&mut self, written: Written, committed: bool) {
        let since = self.time;
        match written.node() {
            Some(node) => drop(self.written.insert(node, since)),
            None => self.others_written = since,
        }
        match written {
            _ if !committed => {}
            Written::Node(node, value, bytes) => {
                self.put(node.to_owned(), Kept { value, since, bytes });
            }
            Written::Contact(node, value, bytes) => self.put(node, Kept { value, since, bytes }),
            Written::Lease(node, value) => self.put(node, Kept { value, since, bytes: 0 }),
            Written::Unknown(node) => self.remove(node),
            Written::All => {}
        }
    }

    fn drop_value<T: Cached>(&mut self, node: Uuid) {
        let Some(entry) = self.entries.get_mut(&node) else { return };
        self.bytes -= T::place(entry).take().map_or(0, |kept| kept.bytes);
    }

    fn remove(&mut self, node: Uuid) {
        let Some(Entry { node, contact, lease, .. }) = self.entries.remove(&node) else { return };
        let bytes =
            [node.map(|kept| kept.bytes), contact.map(|kept| kept.bytes), lease.map(|kept| kept.bytes)];
        self.bytes -= bytes.into_iter().flatten().sum::<usize>() + ENTRY;
    }

    /// Let go what was not asked for lately until the rest is within the limit.
    fn shrink(&mut self) {
        while self.bytes > self.limit
            && let Some((node, stamp)) = self.queue.pop_front()
        {
            match self.entries.get_mut(&node).filter(|entry| entry.stamp == stamp) {
                None => {}
                Some(entry) if entry.used => {
                    entry.used = false;
                    self.queue.push_back((node, stamp));
                }
                Some(_) => self.remove(node),
            }
        }
        if self.queue.len() > 2 * self.entries.len() + 64 {
            let entries = &self.entries;
            self.queue.retain(|(node, stamp)| entries.get(node).is_some_and(|entry| entry.stamp == *stamp));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;

    fn node(number: u128, version: u64) -> Arc<Node> {
        let node = Node::enrolled(Uuid::from_u128(number), "fake-hardware", Timestamp(0));
        Arc::new(Node { version, ..node })
    }

    fn uuid(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn written(number: u128, version: u64) -> Vec<Written> {
        vec![Written::Node(uuid(number), node(number, version), 1000)]
    }

    fn version(cache: &NodeCache, number: u128) -> Option<u64> {
        cache.get::<Arc<Node>>(uuid(number)).map(|node| node.version)
    }

    #[test]
    fn nothing_is_in_it_that_is_not_committed() {
        let cache = NodeCache::new(1 << 20);
        cache.begin(written(1, 1)).committed();
        assert_eq!(version(&cache, 1), Some(1));
        let commit = cache.begin(written(1, 2));
        assert_eq!(
            version(&cache, 1),
            None,
            "neither the old one nor the new one while it is not known which holds"
        );
        drop(commit);
        assert_eq!(version(&cache, 1), None, "the commit failed");
        cache.begin(written(1, 2)).committed();
        assert_eq!(version(&cache, 1), Some(2));
        let gone = || vec![Written::Unknown(uuid(1))];
        drop(cache.begin(gone()));
        cache.begin(gone()).committed();
        assert_eq!(version(&cache, 1), None);
    }

    #[test]
    fn an_old_snapshot_keeps_nothing_that_was_written_since() {
        let cache = NodeCache::new(1 << 20);
        let before = cache.reading();
        let commit = cache.begin(written(1, 2));
        let during = cache.reading();
        let keep_old = |reading: &Reading| reading.keep(uuid(1), node(1, 1), 1000);
        keep_old(&before);
        keep_old(&during);
        assert_eq!(version(&cache, 1), None);
        commit.committed();
        // As if the limit had pushed out what was committed.
        cache.state().remove(uuid(1));
        keep_old(&before);
        keep_old(&during);
        assert_eq!(version(&cache, 1), None);
        before.keep(uuid(2), node(2, 1), 1000);
        assert_eq!(version(&cache, 2), Some(1), "another node was not written");
        cache.reading().keep(uuid(1), node(1, 2), 1000);
        assert_eq!(version(&cache, 1), Some(2));

        // Also where more was written than it remembers, and where all was.
        let before = cache.reading();
        for number in 10..10 + REMEMBERED as u128 + 1 {
            cache.begin(vec![Written::Unknown(uuid(number))]).committed();
        }
        before.keep(uuid(10), node(10, 1), 1000);
        assert_eq!(version(&cache, 10), None);
        let before = cache.reading();
        let commit = cache.begin(vec![Written::All]);
        assert_eq!(version(&cache, 1), None);
        keep_old(&before);
        keep_old(&cache.reading());
        assert_eq!(version(&cache, 1), None);
        commit.committed();
        keep_old(&before);
        assert_eq!(version(&cache, 1), None);
        cache.reading().keep(uuid(1), node(1, 3), 1000);
        assert_eq!(version(&cache, 1), Some(3));
    }

    #[test]
    fn a_snapshot_uses_only_what_is_as_old_as_itself() {
        let cache = NodeCache::new(1 << 20);
        cache.begin(written(1, 1)).committed();
        let reading = cache.reading();
        assert!(reading.get::<Arc<Node>>(uuid(1)).is_some());
        cache.begin(written(1, 2)).committed();
        assert!(reading.get::<Arc<Node>>(uuid(1)).is_none(), "the snapshot has version 1");
        assert_eq!(version(&cache, 1), Some(2));
    }

    #[test]
    fn the_limit_holds_and_what_is_asked_for_stays() {
        let cache = NodeCache::new(100 * (1000 + ENTRY));
        for number in 0..1000 {
            cache.begin(written(number, 1)).committed();
            assert!(cache.bytes() <= 100 * (1000 + ENTRY), "{}", cache.bytes());
            assert_eq!(version(&cache, 0), Some(1), "it is asked for each time");
        }
        assert_eq!((0..1000).filter(|number| version(&cache, *number).is_some()).count(), 100);
        assert!(cache.state().queue.len() <= 300);
        let contact = |bytes| vec![Written::Contact(uuid(0), Arc::default(), bytes)];
        cache.begin(contact(5000)).committed();
        cache.begin(contact(7000)).committed();
        assert!(cache.bytes() <= 100 * (1000 + ENTRY));
        cache.begin(contact(1 << 20)).committed();
        assert_eq!(
            cache.bytes(),
            0,
            "one that is larger than the limit is not kept, and nothing is counted twice"
        );
        cache.begin(written(1, 1)).committed();
        cache.limit(0);
        assert_eq!((version(&cache, 1), cache.bytes()), (None, 0));
        for _ in 0..1000 {
            cache.begin(vec![Written::Unknown(uuid(1))]).committed();
            cache.begin(written(1, 1)).committed();
        }
        assert!(cache.state().queue.len() <= 64);
    }

    #[test]
    fn a_lease_ends_with_its_time() {
        let lease = LeaseState(Some(("a".into(), Timestamp(10))));
        assert_eq!((lease.holder(Timestamp(9)), lease.holder(Timestamp(10))), (Some("a"), None));
        assert_eq!(LeaseState(None).holder(Timestamp(0)), None);
    }
}
