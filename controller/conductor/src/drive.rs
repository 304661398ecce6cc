//! The only loop: wake, take the lease, load, decide, act, record, again.

use crate::act::Hands;
use crate::decision::{Change, Decision, Deed, Outcome, Snapshot};
use crate::settings::Settings;
use crate::states::{absorb, decide};
use model::{Cursor, Node, Timestamp};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{Clock, Lease, Store, StoreError};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long a lease is taken for; renewed before each deed. A deed is bounded well below it.
const LEASE: Duration = Duration::from_secs(300);
/// Nodes driven at once.
const WORKERS: usize = 128;
/// Longest sleep between looks at what is due, whatever the store says.
const LONGEST_NAP: Duration = Duration::from_secs(10);
/// Sleep while something is due that was started already: its pass goes on, and rings when it stores something,
/// or its lease is held elsewhere.
const NAP_WHILE_DUE: Duration = Duration::from_secs(1);

/// Drives all nodes of a store.
pub struct Conductor {
    store: Arc<dyn Store>,
    hands: Arc<dyn Hands>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    name: String,
    started_at: Timestamp,
    busy: Mutex<Busy>,
}

/// Nodes in a pass now, and those whose bell rang meanwhile.
#[derive(Default)]
struct Busy {
    running: HashSet<Uuid>,
    again: HashSet<Uuid>,
}

impl Conductor {
    /// A conductor that calls itself `name` (the holder of its leases; the same after a restart).
    pub fn new(
        store: Arc<dyn Store>,
        hands: Arc<dyn Hands>,
        clock: Arc<dyn Clock>,
        settings: Settings,
        name: String,
    ) -> Arc<Self> {
        let started_at = clock.now();
        Arc::new(Self { store, hands, clock, settings, name, started_at, busy: Mutex::default() })
    }

    /// Drive until `stop`; passes under way are finished first.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut bell = self.store.bell().listen();
        let places = Arc::new(Semaphore::new(WORKERS));
        let mut passes = JoinSet::new();
        loop {
            let nap = self.nap().await;
            // In this order, so that a simulation sees the same choice each time.
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                rung = bell.recv() => if let Some(node) = rung { self.start(node, &places, &mut passes) },
                () = tokio::time::sleep(nap) => {}
            }
            while let Ok(node) = bell.try_recv() {
                self.start(node, &places, &mut passes);
            }
            match self.store.due(self.clock.now(), 1000).await {
                Ok(due) => due.into_iter().for_each(|node| self.start(node, &places, &mut passes)),
                Err(error) => tracing::error!(%error, "cannot read which nodes are due"),
            }
            while passes.try_join_next().is_some() {}
        }
        while passes.join_next().await.is_some() {}
    }

    async fn nap(&self) -> Duration {
        let now = self.clock.now();
        match self.store.next_due().await {
            Ok(Some(at)) if at > now => at.since(now).min(LONGEST_NAP),
            Ok(Some(_)) => NAP_WHILE_DUE,
            _ => LONGEST_NAP,
        }
    }

    fn start(self: &Arc<Self>, node: Uuid, places: &Arc<Semaphore>, passes: &mut JoinSet<()>) {
        {
            let mut busy = self.busy();
            if !busy.running.insert(node) {
                busy.again.insert(node);
                return;
            }
        }
        let (this, places) = (self.clone(), places.clone());
        passes.spawn(async move {
            let _place = places.acquire().await;
            loop {
                this.pass(node).await;
                let mut busy = this.busy();
                if !busy.again.remove(&node) {
                    busy.running.remove(&node);
                    break;
                }
            }
        });
    }

    fn busy(&self) -> std::sync::MutexGuard<'_, Busy> {
        self.busy.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// One pass over a node: until it sleeps, or somebody else has it.
    async fn pass(&self, node: Uuid) {
        let now = self.clock.now();
        // A cheap look first: most bells need nothing, and a lease costs two writes.
        match self.load(node).await {
            Ok(snapshot) if asleep(&snapshot, &decide(&snapshot, &self.settings)) => return,
            Ok(_) => {}
            Err(StoreError::NotFound { .. }) => return,
            Err(error) => return tracing::error!(node_uuid = %node, %error, "cannot load the node"),
        }
        let lease = match self.store.take_lease(node, &self.name, now, now.after(LEASE)).await {
            Ok(Some(lease)) => lease,
            Ok(None) => return,
            Err(error) => return tracing::error!(node_uuid = %node, %error, "cannot take the lease"),
        };
        loop {
            match self.turn(node, lease).await {
                Ok(true) => {}
                Ok(false) => break,
                // The API wrote meanwhile: look again, every deed may be repeated.
                Err(StoreError::Stale(_)) => match self.store.renew_lease(lease, self.lease_end()).await {
                    Ok(true) => {}
                    _ => break,
                },
                Err(StoreError::NotFound { .. }) => break,
                Err(error) => {
                    tracing::error!(node_uuid = %node, %error, "the store failed in the middle of a pass");
                    tokio::time::sleep(self.settings.retry_pause()).await;
                    break;
                }
            }
        }
        if let Err(error) = self.store.release_lease(lease).await {
            tracing::warn!(node_uuid = %node, %error, "cannot release the lease; it will expire");
        }
    }

    /// One decision and what follows from it. False when the node sleeps.
    async fn turn(&self, uuid: Uuid, lease: Lease) -> Result<bool, StoreError> {
        let mut snapshot = self.load(uuid).await?;
        match decide(&snapshot, &self.settings) {
            Decision::Sleep { wait, wake_at } => {
                let node = &snapshot.node;
                if node.wait != wait || node.next_wake_at != wake_at {
                    let node = Node { wait, next_wake_at: wake_at, ..snapshot.node };
                    self.store.update_node(node, Vec::new(), Some(lease)).await?;
                }
                Ok(false)
            }
            Decision::Record(change) => self.record(&snapshot.node, *change, lease).await.map(|()| true),
            Decision::Act(deed) => self.do_deed(snapshot, &deed, lease).await.map(|()| true),
            Decision::Begin(change, deed) => {
                self.record(&snapshot.node, *change, lease).await?;
                snapshot = self.load(uuid).await?;
                self.do_deed(snapshot, &deed, lease).await.map(|()| true)
            }
        }
    }

    /// Do a deed and store what came of it.
    async fn do_deed(&self, mut snapshot: Snapshot, deed: &Deed, lease: Lease) -> Result<(), StoreError> {
        let uuid = snapshot.node.uuid;
        if !self.store.renew_lease(lease, self.lease_end()).await? {
            return Err(StoreError::Stale(uuid));
        }
        let outcome = self.hands.act(&snapshot.node, &snapshot.contact, deed).await;
        if let Outcome::Failed(trouble) = &outcome {
            tracing::warn!(node_uuid = %uuid, error = %trouble.text, "a deed did not work");
        }
        loop {
            snapshot.now = self.clock.now();
            let change = absorb(&snapshot, deed, outcome.clone(), &self.settings);
            match self.record(&snapshot.node, change, lease).await {
                // The API wrote meanwhile. What was done stays done: its outcome is absorbed into what is
                // stored now, unless that no longer waits for it.
                Err(StoreError::Stale(_)) => {
                    if !self.store.renew_lease(lease, self.lease_end()).await? {
                        return Err(StoreError::Stale(uuid));
                    }
                    let fresh = self.load(uuid).await?;
                    if !same_place(&fresh.node, &snapshot.node) {
                        return Err(StoreError::Stale(uuid));
                    }
                    snapshot = fresh;
                }
                recorded => return recorded,
            }
        }
    }

    /// Store a change: what the node's row will rely on first, the row last.
    async fn record(&self, before: &Node, mut change: Change, lease: Lease) -> Result<(), StoreError> {
        let uuid = before.uuid;
        if change.forget_agent {
            self.store.forget_agent(uuid).await?;
        }
        for (kind, catalogue) in change.catalogues {
            self.store.put_catalogue(uuid, kind, catalogue).await?;
        }
        if let Some(inventory) = change.inventory {
            self.store.put_inventory(uuid, inventory).await?;
        }
        if change.node == *before && change.events.is_empty() {
            return Ok(());
        }
        change.node.updated_at = Some(self.clock.now());
        for event in &change.events {
            tracing::info!(node_uuid = %uuid, "{}", event.text);
        }
        self.store.update_node(change.node, change.events, Some(lease)).await.map(drop)
    }

    async fn load(&self, node: Uuid) -> Result<Snapshot, StoreError> {
        let node = self.store.node(node).await?;
        let contact = self.store.contact(node.uuid).await?;
        let awaits = node.run.as_ref().is_some_and(|run| run.cursor == Cursor::AwaitInventory);
        let inventory = if awaits { self.store.inventory(node.uuid).await? } else { None };
        let starting = node.run.as_ref().filter(|run| run.cursor == Cursor::Start);
        let catalogue = match starting.and_then(|run| run.kind.steps()) {
            Some(kind) => self.store.catalogue(node.uuid, kind).await?,
            None => None,
        };
        let abilities = self.hands.abilities(&node);
        let (listening_since, now) = (self.started_at, self.clock.now());
        Ok(Snapshot { node, contact, abilities, catalogue, inventory, listening_since, now })
    }

    fn lease_end(&self) -> Timestamp {
        self.clock.now().after(LEASE)
    }
}

/// Whether a node still waits for the outcome of a deed.
fn same_place(a: &Node, b: &Node) -> bool {
    let place = |node: &Node| {
        let run = node.run.as_ref().map(|run| (run.id, run.cursor.clone()));
        (node.provision_state, node.target_power_state, run)
    };
    place(a) == place(b)
}

/// Whether a decision is to sleep as the node already does.
fn asleep(snapshot: &Snapshot, decision: &Decision) -> bool {
    matches!(decision, Decision::Sleep { wait, wake_at }
        if *wait == snapshot.node.wait && *wake_at == snapshot.node.next_wake_at)
}
