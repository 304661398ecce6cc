//! One pass over a node: decide, act, store, until it sleeps.

use super::conductor::Conductor;
use super::lease::HeldLease;
use super::load::{needs_catalogue, needs_inventory};
use super::record::attributed;
use crate::decision::{Action, Change, Decision, Outcome, Snapshot};
use crate::stages::{decide, may_be_unfenced};
use model::history::StateAtEvent;
use model::{Contact, Node, Timestamp};
use std::time::Duration;
use store::StoreError;
use uuid::Uuid;

/// Shortest and longest sleep between two looks at what is due, whatever the store says: a hundred nodes that are
/// at work must not spin the loop.
pub const NAP: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(10));

/// Most changes that are stored in one write because each follows from the one before.
const IN_ONE_WRITE: usize = 4;

/// A node as its worker drives it.
pub struct Pass {
    /// The node.
    pub node: Uuid,
    /// The lease, while it is held.
    pub lease: Option<HeldLease>,
    /// Why the pass goes on later, while nothing has changed.
    pub later: Option<Later>,
    /// The node as it was last read: the store is only asked whether it still is like that, except once after the
    /// lease was taken, so that everything that is written under a lease was read under it.
    known: Option<Node>,
}

/// What a pass waits for, without a place among those that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Later {
    /// Another controller holds the lease.
    Held,
    /// A call that the controller before may have begun has ended then, or the node is due. The lease is kept until then, or until the
    /// node's bell rings: what needs no call does not wait.
    Settled(Timestamp),
}

impl Pass {
    /// The first pass over a node.
    pub fn of(node: Uuid) -> Self {
        Self { node, lease: None, later: None, known: None }
    }

    /// The node as it was last read, if it is still as it was then.
    pub fn known(&self) -> Option<&Node> {
        self.known.as_ref()
    }

    /// Read the node anew next time.
    pub fn forget_node(&mut self) {
        self.known = None;
    }

    /// When the node is to be looked at again without a ring of its bell: when it is due, and soon if it could not be read. Not at once, so
    /// that a node that stays due does not make its worker spin.
    fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let wake_at = self.known.as_ref().map_or(Some(now), |node| node.next_wake_at);
        wake_at.map(|at| at.max(now.after(NAP.0)))
    }

    /// The lease that its writes are made under.
    ///
    /// # Errors
    /// [`StoreError::Stale`] without one.
    pub fn held(&mut self) -> Result<&mut HeldLease, StoreError> {
        self.lease.as_mut().ok_or(StoreError::Stale(self.node))
    }
}

impl Conductor {
    /// One pass over a node: until it sleeps, or another controller has it.
    pub(super) async fn pass(&self, pass: &mut Pass) {
        pass.later = None;
        if pass.lease.is_none() && !self.begins(pass).await {
            return;
        }
        self.turns(pass).await;
        if pass.later.is_some() {
            return;
        }
        let now = self.clock.now();
        let settled = pass.lease.as_ref().and_then(|held| held.unsettled_until(now));
        pass.later = settled.map(|at| Later::Settled(pass.due(now).map_or(at, |due| due.min(at))));
        if pass.later.is_none()
            && let Some(held) = pass.lease.take()
        {
            self.release_lease(held).await;
        }
    }

    /// Take the lease, if there is something to do. False if not.
    async fn begins(&self, pass: &mut Pass) -> bool {
        let uuid = pass.node;
        // Read without the lease first: most bells need nothing, and a lease costs two writes.
        match self.load(uuid, pass.known.take()).await {
            Ok(snapshot) => {
                if !self.members.drives(&snapshot.node) {
                    return false;
                }
                if is_as_stored(&decide(&snapshot, &self.settings), &snapshot.node) {
                    pass.known = Some(snapshot.node);
                    return false;
                }
            }
            Err(StoreError::NotFound { .. }) => return false,
            Err(error) => {
                tracing::error!(node_uuid = %uuid, error = %error.chain(), "cannot load the node");
                return false;
            }
        }
        match self.take_lease(uuid).await {
            Ok(Some(mut held)) => {
                if let Err(error) = self.look_back(&mut held).await {
                    // Then it waits, as if there had been a call.
                    tracing::warn!(node_uuid = %uuid, error = %error.chain(), "cannot read what another controller left");
                }
                pass.lease = Some(held);
            }
            // It may be that of a controller that has died, and nothing rings when it expires.
            Ok(None) => pass.later = Some(Later::Held),
            // Removed since it was read.
            Err(StoreError::NotFound { .. }) => {}
            Err(error) => {
                tracing::error!(node_uuid = %uuid, error = %error.chain(), "cannot take the lease");
            }
        }
        pass.lease.is_some()
    }

    /// Decisions and what follows from them, until the node sleeps.
    async fn turns(&self, pass: &mut Pass) {
        let uuid = pass.node;
        loop {
            // In a box: the futures of all passes would be as large as this one.
            match Box::pin(self.turn(pass)).await {
                Ok(true) => {}
                Ok(false) => break,
                // The API wrote meanwhile: look again, every action may be repeated.
                Err(StoreError::Stale(_)) => match self.renew(pass).await {
                    Ok(()) => {}
                    Err(StoreError::Stale(_)) => {
                        // Another controller has it.
                        pass.lease = None;
                        break;
                    }
                    Err(_) => break,
                },
                Err(StoreError::NotFound { .. }) => break,
                Err(error) => {
                    tracing::error!(node_uuid = %uuid, error = %error.chain(), "the store failed in the middle of a pass");
                    tokio::time::sleep(self.settings.retry_pause()).await;
                    break;
                }
            }
        }
    }

    /// Renew the lease of a pass.
    pub(super) async fn renew(&self, pass: &mut Pass) -> Result<(), StoreError> {
        self.renew_lease(pass.held()?).await
    }

    /// One decision and what follows from it. False when the node sleeps.
    async fn turn(&self, pass: &mut Pass) -> Result<bool, StoreError> {
        let snapshot = self.load(pass.node, pass.known.take()).await?;
        let decision = decide(&snapshot, &self.settings);
        if let Some(at) = self.settles_at(pass, &snapshot.contact, &decision)? {
            pass.known = Some(snapshot.node);
            pass.later = Some(Later::Settled(at));
            return Ok(false);
        }
        let stored = match decision {
            Decision::Sleep { wait, wake_at } => {
                let mut node = snapshot.node;
                if node.wait != wait || node.next_wake_at != wake_at {
                    node = Node { wait, next_wake_at: wake_at, ..node };
                    node = self.store.update_node(node, Vec::new(), Some(pass.held()?.lease)).await?;
                }
                pass.known = Some(node);
                return Ok(false);
            }
            Decision::Record(change) => {
                let change = self.coalesce(&snapshot, *change).await?;
                self.record(snapshot.node, change, pass.held()?.lease).await?
            }
            Decision::Act(action) => Box::pin(self.perform(snapshot, &action, pass)).await?,
            Decision::Begin(change, action) => {
                let change = attributed(&snapshot.node, *change);
                let begun = self.record_begin(snapshot.node, change, pass).await?;
                let snapshot = self.load(pass.node, Some(begun)).await?;
                Box::pin(self.perform(snapshot, &action, pass)).await?
            }
        };
        pass.known = Some(stored);
        Ok(true)
    }

    /// When this controller may do what was decided, if it is too soon: another one may have died in a call that is still under way.
    fn settles_at(
        &self,
        pass: &mut Pass,
        contact: &Contact,
        decision: &Decision,
    ) -> Result<Option<Timestamp>, StoreError> {
        let (Decision::Act(action) | Decision::Begin(_, action)) = decision else { return Ok(None) };
        let call = self.executor.unfenced_call(contact, action);
        Ok(pass.held()?.settles_at(call, self.clock.now()))
    }

    /// Do an action and store its outcome.
    async fn perform(
        &self,
        snapshot: Snapshot,
        action: &Action,
        pass: &mut Pass,
    ) -> Result<Node, StoreError> {
        let uuid = pass.node;
        let held = pass.held()?;
        let (node, contact) = (&snapshot.node, &snapshot.contact);
        debug_assert!(
            self.executor.unfenced_call(contact, action).is_zero() || may_be_unfenced(node, contact),
            "{action:?} of node {uuid} is a call that its row excludes: a successor would not wait for it"
        );
        let acting = self.executor.act(held.lease.epoch, node, contact, action);
        let outcome = self.while_held(held, acting).await?;
        if let Outcome::Failed(error) = &outcome {
            tracing::warn!(node_uuid = %uuid, error = %error.text, "an action failed");
        }
        self.record_outcome(snapshot, action, &outcome, pass).await
    }

    /// The change together with those that follow from it alone, so that they are stored in one write: a step that
    /// ended and the next one that begins. Nothing follows a change of the provision state: each event is stored
    /// with the state that the node was in before its write.
    pub(super) async fn coalesce(&self, snapshot: &Snapshot, change: Change) -> Result<Change, StoreError> {
        let mut change = attributed(&snapshot.node, change);
        for _ in 1..IN_ONE_WRITE {
            let stands = StateAtEvent::of(&change.node) == StateAtEvent::of(&snapshot.node);
            let needs_more = needs_catalogue(&change.node).is_some() || needs_inventory(&change.node);
            if !stands || change.forget_agent || needs_more {
                break;
            }
            // The agent may have been heard while the action went on.
            let contact = self.store.contact(change.node.uuid).await?;
            let (node, abilities, now) = (change.node.clone(), snapshot.abilities.clone(), self.clock.now());
            let next = Snapshot::of(node, contact, abilities, snapshot.listening_since, now);
            match decide(&next, &self.settings) {
                Decision::Record(more) if more.is_of_the_node_alone() => {
                    let more = attributed(&next.node, *more);
                    change.node = more.node;
                    change.events.extend(more.events);
                }
                _ => break,
            }
        }
        Ok(change)
    }
}

/// Whether a decision is to sleep as the node already does.
fn is_as_stored(decision: &Decision, node: &Node) -> bool {
    matches!(decision, Decision::Sleep { wait, wake_at }
        if *wait == node.wait && *wake_at == node.next_wake_at)
}
