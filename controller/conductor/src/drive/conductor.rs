//! The conductor's state: what it works with, and which nodes it is driving.

use crate::act::Executor;
use crate::issuer::CertificateIssuer;
use crate::settings::Settings;
use model::Timestamp;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};
use store::{Clock, Store};
use uuid::Uuid;

/// Drives all nodes of a store.
pub struct Conductor {
    pub(super) store: Arc<dyn Store>,
    pub(super) executor: Arc<dyn Executor>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: Settings,
    pub(super) name: String,
    pub(super) issuer: CertificateIssuer,
    pub(super) started_at: Timestamp,
    busy: Mutex<Busy>,
}

/// Nodes in a pass now, and those whose bell rang meanwhile.
#[derive(Default)]
pub(super) struct Busy {
    pub running: HashSet<Uuid>,
    pub again: HashSet<Uuid>,
}

impl Conductor {
    /// A conductor that calls itself `name` (the holder of its leases; the same after a restart), and certifies
    /// as `issuer`.
    pub fn new(
        store: Arc<dyn Store>,
        executor: Arc<dyn Executor>,
        clock: Arc<dyn Clock>,
        settings: Settings,
        name: String,
        issuer: CertificateIssuer,
    ) -> Arc<Self> {
        let started_at = clock.now();
        Arc::new(Self { store, executor, clock, settings, name, issuer, started_at, busy: Mutex::default() })
    }

    pub(super) fn busy(&self) -> MutexGuard<'_, Busy> {
        self.busy.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
