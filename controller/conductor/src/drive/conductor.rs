//! The conductor's state: what it works with, and which nodes it is driving.

use crate::act::Executor;
use crate::issuer::CertificateIssuer;
use crate::observer::Observer;
use crate::settings::Settings;
use model::Timestamp;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use store::{Clock, Members, Store};
use tokio::sync::Notify;
use uuid::Uuid;

/// Drives all nodes of a store.
pub struct Conductor {
    pub(super) store: Arc<dyn Store>,
    pub(super) executor: Arc<dyn Executor>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: Settings,
    pub(super) members: Members,
    pub(super) started_at: Timestamp,
    pub(super) issuer: CertificateIssuer,
    listening_since: AtomicI64,
    busy: Mutex<Busy>,
    observer: OnceLock<Arc<dyn Observer>>,
}

/// Nodes that have a worker now, each with what wakes that one while it waits, and those whose bell rang meanwhile.
#[derive(Default)]
pub(super) struct Busy {
    pub running: HashMap<Uuid, Arc<Notify>>,
    pub again: HashSet<Uuid>,
}

impl Conductor {
    /// A conductor with the name of `members` (the holder of its leases; the same after a restart), which it keeps, and that
    /// certifies as `issuer`.
    pub fn new(
        store: Arc<dyn Store>,
        executor: Arc<dyn Executor>,
        clock: Arc<dyn Clock>,
        settings: Settings,
        members: Members,
        issuer: CertificateIssuer,
    ) -> Arc<Self> {
        let started_at = clock.now();
        let listening_since = AtomicI64::new(started_at.0);
        let busy = Mutex::default();
        Arc::new(Self {
            store,
            executor,
            clock,
            settings,
            members,
            started_at,
            issuer,
            listening_since,
            busy,
            observer: OnceLock::new(),
        })
    }

    /// Let `observer` hear what is done. The first of several hears.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.observer.get_or_init(|| observer);
    }

    pub(super) fn observer(&self) -> Option<&dyn Observer> {
        self.observer.get().map(|observer| &**observer)
    }

    /// Since when agents can report to this process.
    pub(super) fn listening_since(&self) -> Timestamp {
        Timestamp(self.listening_since.load(Ordering::Relaxed))
    }

    /// The same after the clock was set forward by this many microseconds.
    pub(super) fn listen_from(&self, by: i64) {
        self.listening_since.fetch_add(by, Ordering::Relaxed);
    }

    pub(super) fn busy(&self) -> MutexGuard<'_, Busy> {
        self.busy.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
