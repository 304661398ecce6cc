//! What has happened is stored, although the store fails for a while.
//!
//! That a step of an interface begins is stored before the step is started, and its outcome afterwards. A step that is found begun and
//! without an outcome counts as interrupted: it runs again, or its run fails. So neither write is given up as soon as the store
//! fails: PostgreSQL may be restarted in the middle of either, and may have stored what it did not acknowledge.

use super::conductor::Conductor;
use super::lease::LOOK_EVERY;
use super::pass::Pass;
use crate::decision::{Action, Change, Outcome, Snapshot};
use crate::stages::apply_outcome;
use model::Node;
use std::time::Duration;
use store::StoreError;
use tokio::time::{Instant, sleep};

/// For how long, from the first failure on, an outcome is kept that cannot be stored. "PostgreSQL restarted, or gone for a minute"
/// (issue 18), and a reserve.
const PATIENCE: Duration = Duration::from_secs(90);

impl Conductor {
    /// Store that an action begins; the node as stored.
    ///
    /// After a failure the store is read: it may have stored that.
    pub(super) async fn record_begin(
        &self,
        before: Node,
        change: Change,
        pass: &mut Pass,
    ) -> Result<Node, StoreError> {
        let wanted = change.node.clone();
        match self.record(before, change, pass.held()?.lease).await {
            Err(failure @ StoreError::Failed { .. }) => {
                let stored = self.read_after(failure, pass, Instant::now() + PATIENCE).await?.node;
                // No other writer has this lease. If it was not stored, it is decided again.
                if awaits_same_outcome(&stored, &wanted) {
                    Ok(stored)
                } else {
                    Err(StoreError::Stale(pass.node))
                }
            }
            recorded => recorded,
        }
    }

    /// Store the outcome of an action; the node as stored.
    pub(super) async fn record_outcome(
        &self,
        mut snapshot: Snapshot,
        action: &Action,
        outcome: &Outcome,
        pass: &mut Pass,
    ) -> Result<Node, StoreError> {
        let until = Instant::now() + PATIENCE;
        loop {
            snapshot.now = self.clock.now();
            let change = apply_outcome(&snapshot, action, outcome.clone(), &self.settings);
            let failure = match self.record_change(&snapshot, change, pass).await {
                // The API wrote meanwhile, or the store failed.
                Err(failure @ (StoreError::Stale(_) | StoreError::Failed { .. })) => failure,
                recorded => return recorded,
            };
            let fresh = self.read_after(failure, pass, until).await?;
            // The action has happened: its outcome is applied to what is stored now, unless that no longer waits for it.
            if !awaits_same_outcome(&fresh.node, &snapshot.node) {
                return Err(StoreError::Stale(pass.node));
            }
            snapshot = fresh;
        }
    }

    async fn record_change(
        &self,
        snapshot: &Snapshot,
        change: Change,
        pass: &mut Pass,
    ) -> Result<Node, StoreError> {
        let change = self.coalesce(snapshot, change).await?;
        self.record(snapshot.node.clone(), change, pass.held()?.lease).await
    }

    /// What the store has after it refused or failed to store something, once it answers under the lease of this pass.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when another controller has the lease; a failure of the store when it fails at `until`.
    async fn read_after(
        &self,
        mut failure: StoreError,
        pass: &mut Pass,
        until: Instant,
    ) -> Result<Snapshot, StoreError> {
        loop {
            if matches!(failure, StoreError::Failed { .. }) {
                if Instant::now() >= until {
                    return Err(failure);
                }
                tracing::warn!(node_uuid = %pass.node, error = %failure.chain(), "cannot store what has happened; trying again");
                sleep(LOOK_EVERY).await;
            }
            match self.read_again(pass).await {
                Err(again @ StoreError::Failed { .. }) => failure = again,
                answered => return answered,
            }
        }
    }

    async fn read_again(&self, pass: &mut Pass) -> Result<Snapshot, StoreError> {
        self.renew(pass).await?;
        self.load(pass.node, None).await
    }
}

/// Whether two versions of a node wait for the outcome of the same action.
fn awaits_same_outcome(a: &Node, b: &Node) -> bool {
    let place = |node: &Node| {
        let run = node.run.as_ref().map(|run| (run.id, run.cursor.clone()));
        (node.provision_state, node.target_power_state, run)
    };
    place(a) == place(b)
}
