//! The only loop: wake, take the lease, load, decide, act, record, again.

use crate::act::Executor;
use crate::decision::{Action, Change, Decision, Outcome, Rules, Snapshot};
use crate::notary::{Notary, Proof};
use crate::settings::Settings;
use crate::stages::{apply_outcome, decide};
use model::history::{EventKind, Severity, StateAtEvent};
use model::request::event;
use model::{Certificate, Cursor, Inventory, Node, ResourceKind, StepKind, StepResult, Timestamp};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{Clock, Lease, Store, StoreError};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long a lease is taken for.
const LEASE: Duration = Duration::from_secs(300);
/// As much of it is left when an action begins, or it is renewed first: longer than any action takes (asking an agent
/// for its steps makes three calls of a minute). Not renewed each time, because that is a write, and a step is
/// two actions.
const ENOUGH: Duration = Duration::from_secs(240);
/// Nodes driven at once.
const WORKERS: usize = 128;
/// Shortest and longest sleep between two looks at what is due, whatever the store says: a hundred nodes that are
/// at work must not spin the loop.
const NAP: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(10));
/// Longest sleep while a node is due: it is in a pass, which rings when it stores something, or its lease is held
/// elsewhere.
const NAP_WHILE_DUE: Duration = Duration::from_secs(1);
/// Most changes that are stored in one write because each follows from the one before.
const IN_ONE_WRITE: usize = 4;

/// Drives all nodes of a store.
pub struct Conductor {
    store: Arc<dyn Store>,
    executor: Arc<dyn Executor>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    name: String,
    notary: Notary,
    started_at: Timestamp,
    busy: Mutex<Busy>,
}

/// A lease that was taken, and until when it lasts.
struct Held {
    lease: Lease,
    until: Timestamp,
}

/// Nodes in a pass now, and those whose bell rang meanwhile.
#[derive(Default)]
struct Busy {
    running: HashSet<Uuid>,
    again: HashSet<Uuid>,
}

impl Conductor {
    /// A conductor that calls itself `name` (the holder of its leases; the same after a restart), and certifies
    /// as `notary`.
    pub fn new(
        store: Arc<dyn Store>,
        executor: Arc<dyn Executor>,
        clock: Arc<dyn Clock>,
        settings: Settings,
        name: String,
        notary: Notary,
    ) -> Arc<Self> {
        let started_at = clock.now();
        Arc::new(Self { store, executor, clock, settings, name, notary, started_at, busy: Mutex::default() })
    }

    /// Drive until `stop`; passes under way are finished first.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut bell = self.store.bell().listen();
        let places = Arc::new(Semaphore::new(WORKERS));
        let mut passes = JoinSet::new();
        self.give_back().await;
        let mut look_at = Instant::now();
        loop {
            // In this order, so that a simulation sees the same choice each time.
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(node) = bell.recv() => {
                    self.start(node, &places, &mut passes);
                    // It may be due sooner now than was known.
                    look_at = look_at.min(Instant::now() + NAP.0);
                }
                () = tokio::time::sleep_until(look_at) => {
                    // One moment for both: no node becomes due between them.
                    let now = self.clock.now();
                    let longest = match self.start_due(now, &places, &mut passes).await {
                        true => NAP_WHILE_DUE,
                        false => NAP.1,
                    };
                    look_at = Instant::now() + self.nap(now, longest).await;
                }
            }
            while let Ok(node) = bell.try_recv() {
                self.start(node, &places, &mut passes);
            }
            while passes.try_join_next().is_some() {}
        }
        while passes.join_next().await.is_some() {}
    }

    /// Leases that a predecessor of this name held when it was killed: nobody works on those nodes, and one that
    /// rests would stay locked for users until its lease has run out.
    async fn give_back(&self) {
        let nodes = match self.store.nodes().await {
            Ok(nodes) => nodes,
            Err(error) => return tracing::error!(%error, "cannot read which leases were left behind"),
        };
        for Node { uuid, .. } in nodes {
            if let Err(error) = self.give_back_one(uuid).await {
                tracing::warn!(node_uuid = %uuid, %error, "cannot give back a lease; it will expire");
            }
        }
    }

    async fn give_back_one(&self, node: Uuid) -> Result<(), StoreError> {
        let now = self.clock.now();
        if self.store.lease_holder(node, now).await?.as_deref() != Some(&self.name) {
            return Ok(());
        }
        match self.store.take_lease(node, &self.name, now, now.after(LEASE)).await? {
            Some(lease) => self.store.release_lease(lease).await,
            None => Ok(()),
        }
    }

    /// Start the nodes that are due; whether there are any. One that is in a pass is left alone: if it is due after
    /// that still, the next look finds it.
    async fn start_due(
        self: &Arc<Self>,
        now: Timestamp,
        places: &Arc<Semaphore>,
        passes: &mut JoinSet<()>,
    ) -> bool {
        let due = match self.store.due(now, 1000).await {
            Ok(due) => due,
            Err(error) => {
                tracing::error!(%error, "cannot read which nodes are due");
                return true;
            }
        };
        let rest = due.iter().filter(|node| !self.busy().running.contains(node));
        rest.for_each(|node| self.start(*node, places, passes));
        !due.is_empty()
    }

    async fn nap(&self, now: Timestamp, longest: Duration) -> Duration {
        match self.store.next_due(now).await {
            Ok(Some(at)) => at.since(now).clamp(NAP.0, longest),
            _ => longest,
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
            let mut known = None;
            loop {
                this.pass(node, &mut known).await;
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

    /// One pass over a node: until it sleeps, or somebody else has it. `known` is the node as it was last seen:
    /// the store is only asked whether it still is like that, except once after the lease was taken, so that
    /// everything that is written under a lease was read under it.
    async fn pass(&self, uuid: Uuid, known: &mut Option<Node>) {
        let now = self.clock.now();
        // A cheap look first: most bells need nothing, and a lease costs two writes.
        match self.load(uuid, known.take()).await {
            Ok(snapshot) => {
                if asleep(&snapshot, &decide(&snapshot, &self.settings)) {
                    *known = Some(snapshot.node);
                    return;
                }
            }
            Err(StoreError::NotFound { .. }) => return,
            Err(error) => return tracing::error!(node_uuid = %uuid, %error, "cannot load the node"),
        }
        let until = now.after(LEASE);
        let mut held = match self.store.take_lease(uuid, &self.name, now, until).await {
            Ok(Some(lease)) => Held { lease, until },
            Ok(None) => return,
            Err(error) => return tracing::error!(node_uuid = %uuid, %error, "cannot take the lease"),
        };
        loop {
            match self.turn(uuid, known, &mut held).await {
                Ok(true) => {}
                Ok(false) => break,
                // The API wrote meanwhile: look again, every action may be repeated.
                Err(StoreError::Stale(_)) => match self.renew(&mut held).await {
                    Ok(()) => {}
                    Err(_) => break,
                },
                Err(StoreError::NotFound { .. }) => break,
                Err(error) => {
                    tracing::error!(node_uuid = %uuid, %error, "the store failed in the middle of a pass");
                    tokio::time::sleep(self.settings.retry_pause()).await;
                    break;
                }
            }
        }
        if let Err(error) = self.store.release_lease(held.lease).await {
            tracing::warn!(node_uuid = %uuid, %error, "cannot release the lease; it will expire");
        }
    }

    /// One decision and what follows from it. False when the node sleeps.
    async fn turn(&self, uuid: Uuid, known: &mut Option<Node>, held: &mut Held) -> Result<bool, StoreError> {
        let snapshot = self.load(uuid, known.take()).await?;
        let stored = match decide(&snapshot, &self.settings) {
            Decision::Sleep { wait, wake_at } => {
                let mut node = snapshot.node;
                if node.wait != wait || node.next_wake_at != wake_at {
                    node = Node { wait, next_wake_at: wake_at, ..node };
                    node = self.store.update_node(node, Vec::new(), Some(held.lease)).await?;
                }
                *known = Some(node);
                return Ok(false);
            }
            Decision::Record(change) => {
                let change = self.followed(&snapshot, *change).await?;
                self.record(snapshot.node, change, held.lease).await?
            }
            Decision::Act(action) => self.perform(snapshot, &action, held).await?,
            Decision::Begin(change, action) => {
                let begun = self.record(snapshot.node, *change, held.lease).await?;
                let snapshot = self.load(uuid, Some(begun)).await?;
                self.perform(snapshot, &action, held).await?
            }
        };
        *known = Some(stored);
        Ok(true)
    }

    /// Do an action and store what came of it.
    async fn perform(
        &self,
        mut snapshot: Snapshot,
        action: &Action,
        held: &mut Held,
    ) -> Result<Node, StoreError> {
        let uuid = snapshot.node.uuid;
        if held.until.since(self.clock.now()) < ENOUGH {
            self.renew(held).await?;
        }
        let outcome = self.executor.act(&snapshot.node, &snapshot.contact, action).await;
        if let Outcome::Failed(error) = &outcome {
            tracing::warn!(node_uuid = %uuid, error = %error.text, "an action did not work");
        }
        loop {
            snapshot.now = self.clock.now();
            let change = apply_outcome(&snapshot, action, outcome.clone(), &self.settings);
            let change = self.followed(&snapshot, change).await?;
            match self.record(snapshot.node.clone(), change, held.lease).await {
                // The API wrote meanwhile. What was done stays done: its outcome is applied into what is
                // stored now, unless that no longer waits for it.
                Err(StoreError::Stale(_)) => {
                    self.renew(held).await?;
                    let fresh = self.load(uuid, None).await?;
                    if !same_place(&fresh.node, &snapshot.node) {
                        return Err(StoreError::Stale(uuid));
                    }
                    snapshot = fresh;
                }
                recorded => return recorded,
            }
        }
    }

    /// The change together with those that follow from it alone, so that they are stored in one write: a step that
    /// ended and the next one that begins. Nothing follows a change of the provision state: each event is stored
    /// with the state that the node was in before its write.
    async fn followed(&self, snapshot: &Snapshot, mut change: Change) -> Result<Change, StoreError> {
        for _ in 1..IN_ONE_WRITE {
            let stands = StateAtEvent::of(&change.node) == StateAtEvent::of(&snapshot.node);
            if !stands || change.forget_agent || wants(&change.node) != (None, false) {
                break;
            }
            // The agent may have been heard while the action went on.
            let contact = self.store.contact(change.node.uuid).await?;
            let (node, abilities, now) = (change.node.clone(), snapshot.abilities.clone(), self.clock.now());
            let next = Snapshot::of(node, contact, abilities, snapshot.listening_since, now);
            match decide(&next, &self.settings) {
                Decision::Record(more) if more.is_of_the_node_alone() => {
                    change.node = more.node;
                    change.events.extend(more.events);
                }
                _ => break,
            }
        }
        Ok(change)
    }

    /// Store a change: what the node's row will rely on first, the row last. The node as it is stored then.
    async fn record(&self, before: Node, mut change: Change, lease: Lease) -> Result<Node, StoreError> {
        let uuid = before.uuid;
        if change.forget_agent {
            self.store.forget_agent(uuid).await?;
        }
        for (kind, catalogue) in std::mem::take(&mut change.catalogues) {
            self.store.put_catalogue(uuid, kind, catalogue).await?;
        }
        let inspected = change.inspected.take();
        if change.node == before && change.events.is_empty() && inspected.is_none() {
            return Ok(before);
        }
        change.node.updated_at = Some(self.clock.now());
        let certificate = match change.evidence.take() {
            Some(proof) => Some(self.certify(&mut change, *proof).await?),
            None => None,
        };
        for event in &change.events {
            tracing::info!(node_uuid = %uuid, "{}", event.text);
        }
        match (certificate, inspected) {
            (Some(certificate), _) => {
                self.store.certify(change.node, change.events, Some(lease), certificate).await
            }
            (None, Some(inspected)) => {
                self.store.update_inspected(change.node, change.events, Some(lease), *inspected).await
            }
            (None, None) => self.store.update_node(change.node, change.events, Some(lease)).await,
        }
    }

    /// The certificate of what was proven, named in the result of its step and in the story of the node.
    async fn certify(&self, change: &mut Change, proof: Proof) -> Result<Certificate, StoreError> {
        let (uuid, now) = (change.node.uuid, self.clock.now());
        let previous = self.store.newest_certificate(uuid).await?;
        let without = || StoreError::Failed(format!("internal: evidence of node {uuid} belongs to no step"));
        let is_of = |result: &StepResult| result.command_id == proof.evidence.command_id;
        let run = change.node.run.as_ref().ok_or_else(without)?;
        let place = run.results.iter().rposition(is_of).ok_or_else(without)?;
        let index = run.results[place].index;
        let certificate = self.notary.certify(&change.node, run, index, proof, previous.as_ref(), now);
        if let Some(run) = &mut change.node.run {
            run.results[place].certificate = Some(certificate.id.clone());
        }
        let (number, id, finding) = (certificate.number, &certificate.id, &certificate.finding);
        let text = format!("erasure certificate {number} of the node ({finding}): {id}");
        change.events.push(event(EventKind::Step, Severity::Info, text, now));
        Ok(certificate)
    }

    /// Make the lease last its full time again.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when it is no longer ours.
    async fn renew(&self, held: &mut Held) -> Result<(), StoreError> {
        let until = self.clock.now().after(LEASE);
        if !self.store.renew_lease(held.lease, until).await? {
            return Err(StoreError::Stale(held.lease.node));
        }
        held.until = until;
        Ok(())
    }

    /// What is known of a node, `known` being how it was last seen.
    async fn load(&self, uuid: Uuid, known: Option<Node>) -> Result<Snapshot, StoreError> {
        let (newer, contact) = self.store.look(uuid, known.as_ref().map(|node| node.version)).await?;
        let node = newer.or(known).ok_or_else(|| StoreError::not_found("Node", uuid))?;
        let (kind, inventory) = wants(&node);
        let inventory = if inventory { self.store.inventory(uuid).await? } else { None };
        let catalogue = match kind {
            Some(kind) => self.store.catalogue(uuid, kind).await?,
            None => None,
        };
        let rules = if ruled(&node, inventory.as_ref()) { self.rules(uuid).await? } else { Rules::default() };
        let abilities = self.executor.abilities(&node);
        let (listening_since, now) = (self.started_at, self.clock.now());
        Ok(Snapshot { node, contact, abilities, catalogue, inventory, rules, listening_since, now })
    }

    /// The inspection rules, and the ports of a node that is inspected.
    async fn rules(&self, node: Uuid) -> Result<Rules, StoreError> {
        let rules = self.store.resources(ResourceKind::InspectionRule, None).await?;
        Ok(Rules { rules, ports: self.store.ports(Some(node)).await? })
    }
}

/// What a decision about this node wants to see beside it: the catalogue of a kind, the inventory.
fn wants(node: &Node) -> (Option<StepKind>, bool) {
    let Some(run) = &node.run else { return (None, false) };
    let starts = if run.cursor == Cursor::Start { run.kind.steps() } else { None };
    (starts, run.cursor == Cursor::AwaitInventory)
}

/// Whether a decision about this node, or what comes of its action, applies inspection rules.
fn ruled(node: &Node, inventory: Option<&Inventory>) -> bool {
    let cursor = node.run.as_ref().map(|run| &run.cursor);
    inventory.is_some() || cursor == Some(&Cursor::AskInventory)
}

/// Whether a node still waits for the outcome of an action.
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
