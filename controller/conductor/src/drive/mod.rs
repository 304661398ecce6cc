//! The only loop: wake, take the lease, load, decide, act, record, again.
//!
//! ```text
//! mod.rs     which nodes are driven now
//! clock_jump.rs  the machine's clock was set
//! members.rs the controllers that share the store
//! places.rs  which pass may begin now
//! worker.rs  the task of one node: passes until it sleeps
//! panics.rs  a pass that panicked
//! pass.rs    one pass: decide, act, store
//! outcome.rs  storing what has happened, although the store fails for a while
//! lease.rs   the lease of a pass      load.rs  what a decision looks at      record.rs  storing a change
//! ```

mod clock_jump;
mod conductor;
mod lease;
mod load;
mod members;
mod outcome;
mod panics;
mod pass;
mod places;
mod record;
mod worker;

pub use conductor::Conductor;

use model::Timestamp;
use pass::NAP;
use places::{PlaceLimits, Places};
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use uuid::Uuid;
use worker::Worker;

/// Longest sleep while a node is due: it is in a pass, which rings when it stores something, or its lease is held
/// elsewhere.
const NAP_WHILE_DUE: Duration = Duration::from_secs(1);
/// Nodes that are started at a time.
const DUE_AT_ONCE: usize = 1000;

/// The tasks that drive nodes, one for each node that is in a pass.
struct Workers {
    tasks: JoinSet<()>,
    places: Arc<Places>,
    stop: CancellationToken,
}

impl Conductor {
    /// Drive until `stop`; passes under way are finished first.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut bell = self.store.bell().listen();
        let places = Places::new(PlaceLimits::of(&self.settings));
        let mut workers = Workers { tasks: JoinSet::new(), places, stop: stop.clone() };
        if !self.join(&stop).await {
            return;
        }
        self.release_stale_leases().await;
        let mut look_at = Instant::now();
        let mut meet_at = Instant::now() + self.pace().every;
        loop {
            // In this order, so that a simulation sees the same choice each time.
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(node) = bell.recv() => {
                    self.start(node, &mut workers);
                    // It may be due sooner now than was known.
                    look_at = look_at.min(Instant::now() + NAP.0);
                }
                () = tokio::time::sleep_until(meet_at) => {
                    meet_at = Instant::now() + self.pace().every;
                    if self.meet().await {
                        self.unsettled().await.into_iter().for_each(|node| self.start(node, &mut workers));
                        look_at = Instant::now();
                    }
                }
                () = tokio::time::sleep_until(look_at) => {
                    if !self.store.is_shared() {
                        self.follow_clock(&mut workers).await;
                    }
                    // One moment for both: no node becomes due between them.
                    let now = self.clock.now();
                    let longest = match self.start_due(now, &mut workers).await {
                        true => NAP_WHILE_DUE,
                        false => NAP.1,
                    };
                    look_at = Instant::now() + self.nap(now, longest).await;
                }
            }
            while let Ok(node) = bell.try_recv() {
                self.start(node, &mut workers);
            }
            while let Some(ended) = workers.tasks.try_join_next() {
                if let Err(error) = ended {
                    tracing::error!(%error, "the task of a node ended early; the node is driven again when it is due");
                }
            }
        }
        // The nodes that are in no pass any more are the others' from here on; each of the rest once its lease is released.
        self.leave().await;
        while workers.tasks.join_next().await.is_some() {}
    }

    /// Start the nodes that are due; whether there are any. One that is in a pass is left alone: if it is due after
    /// that still, the next look finds it.
    async fn start_due(self: &Arc<Self>, now: Timestamp, workers: &mut Workers) -> bool {
        let due = match self.due(now).await {
            Ok(due) => due,
            Err(error) => {
                tracing::error!(error = %error.chain(), "cannot read which nodes are due");
                return true;
            }
        };
        let rest = due.iter().filter(|node| !self.busy().running.contains_key(node));
        rest.for_each(|node| self.start(*node, workers));
        !due.is_empty()
    }

    /// The nodes that are due and may be this controller's. Those of a group whose controllers are all gone stay due, however
    /// many they are: they must not hide the others.
    async fn due(&self, now: Timestamp) -> Result<Vec<Uuid>, StoreError> {
        let mut limit = DUE_AT_ONCE;
        loop {
            let mut due = self.store.due(now, limit).await?;
            let is_all = due.len() < limit;
            due.retain(|node| self.members.may_drive(*node));
            if is_all || !due.is_empty() {
                return Ok(due);
            }
            limit *= 4;
        }
    }

    async fn nap(&self, now: Timestamp, longest: Duration) -> Duration {
        match self.store.next_due(now).await {
            Ok(Some(at)) => at.since(now).clamp(NAP.0, longest),
            _ => longest,
        }
    }

    fn start(self: &Arc<Self>, node: Uuid, workers: &mut Workers) {
        if !self.members.may_drive(node) {
            return;
        }
        let woken = Arc::<Notify>::default();
        {
            let mut busy = self.busy();
            if let Some(waiting) = busy.running.get(&node) {
                waiting.notify_one();
                busy.again.insert(node);
                return;
            }
            busy.running.insert(node, woken.clone());
        }
        let worker = Worker::of(self.clone(), node, woken);
        let (places, stop) = (workers.places.clone(), workers.stop.clone());
        // At the level of errors, so that also they are logged with the node where less than `info` is logged.
        let span = tracing::error_span!("pass", node_uuid = %node);
        workers.tasks.spawn(async move { worker.drive(node, &places, &stop).await }.instrument(span));
    }
}
