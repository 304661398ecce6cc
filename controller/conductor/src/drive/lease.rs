//! The lease that a pass holds, and those that an earlier process of this controller left behind.
//!
//! A lease is short, so that another controller soon goes on where this one died, and it is renewed while an action goes on.
//! Store and agents refuse what comes under a lease that was taken over. A BMC and ironic-python-agent cannot. A call to them
//! begins only while the lease lasts, and so has ended as long after the lease as a call may take. A controller that takes over a lease that
//! was not released waits that long before it changes anything by such a call, unless the node's row says that the controller before
//! made none; everything else it does at once.

use super::conductor::Conductor;
use crate::stages::may_be_unfenced;
use model::Timestamp;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;
use std::time::Duration;
use store::{Lease, StoreError};
use tokio::time::sleep;
use uuid::Uuid;

/// How long a lease is taken for.
const LEASE: Duration = Duration::from_secs(12);
/// As much of that is left when an action begins, or the lease is renewed first. Not renewed each time, because that is a
/// write, and a step is two actions.
const ENOUGH: Duration = Duration::from_secs(6);
/// By how much the clocks of two controllers may differ: each goes by that of the store, but for the way there and back.
const CLOCKS: Duration = Duration::from_secs(1);
/// In microseconds: longer than any call takes that changes something.
const LONGEST_CALL: i64 = 300_000_000;
/// How often it is renewed while an action goes on.
const RENEW_EVERY: Duration = Duration::from_secs(3);
/// How often what is left of it is looked at while the store does not answer, and how often one is tried to take that another
/// controller holds.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A lease that was taken, and until when it lasts.
#[derive(Debug)]
pub struct HeldLease {
    /// The lease.
    pub lease: Lease,
    until: Timestamp,
    /// When it was taken over from another controller, which had not released it: that one may have died in a call that no epoch
    /// fences.
    taken_over: Option<Timestamp>,
}

impl HeldLease {
    /// When a call that the controller before may have begun, and that takes as long as `call` at most, has ended; `None` if it has.
    pub(super) fn settles_at(&self, call: Duration, now: Timestamp) -> Option<Timestamp> {
        if call.is_zero() {
            return None;
        }
        self.taken_over.map(|at| at.after(call + CLOCKS)).filter(|at| *at > now)
    }
}

impl Conductor {
    /// Release leases that an earlier process of this name held when it was killed. A node at rest that nothing wakes
    /// would stay locked for users until its lease runs out. Where others share the store it does: they would not know that this
    /// controller may have died in a call.
    pub(super) async fn release_stale_leases(&self) {
        if self.store.is_shared() {
            return;
        }
        let nodes = match self.store.leased_by(self.members.own()).await {
            Ok(nodes) => nodes,
            Err(error) => {
                return tracing::error!(error = %error.chain(), "cannot read which leases are stale");
            }
        };
        for uuid in nodes {
            if let Err(error) = self.release_stale_lease(uuid).await {
                tracing::warn!(node_uuid = %uuid, error = %error.chain(), "cannot release a stale lease; it will expire");
            }
        }
    }

    async fn release_stale_lease(&self, node: Uuid) -> Result<(), StoreError> {
        let now = self.clock.now();
        if self.store.lease_holder(node, now).await?.as_deref() != Some(self.members.own()) {
            return Ok(());
        }
        match self.store.take_lease(node, self.members.own(), now, now.after(LEASE)).await? {
            Some(lease) => self.store.release_lease(lease).await,
            None => Ok(()),
        }
    }

    /// Take the lease of a node; `None` if another controller holds it.
    pub(super) async fn take_lease(&self, node: Uuid) -> Result<Option<HeldLease>, StoreError> {
        let now = self.clock.now();
        let (own, until) = (self.members.own(), now.after(LEASE));
        // The controller that has it, or had it when a call that it made may still be under way. A lease that yet another controller takes after this
        // has not expired now, and is not taken.
        let before = match self.store.is_shared() {
            true => self.store.lease_holder(node, now.shifted(-LONGEST_CALL)).await?,
            false => None,
        };
        let taken = self.store.take_lease(node, own, now, until).await?;
        let taken_over = before.filter(|before| before != own).map(|_| now);
        Ok(taken.map(|lease| HeldLease { lease, until, taken_over }))
    }

    /// Read what the controller before may have died in, as the first thing under a lease.
    pub(super) async fn look_back(&self, held: &mut HeldLease) -> Result<(), StoreError> {
        if held.taken_over.is_some() {
            let found = self.load(held.lease.node, None).await?;
            held.taken_over = held.taken_over.filter(|_| may_be_unfenced(&found.node, &found.contact));
        }
        Ok(())
    }

    /// Keep a lease until then, or until it is lost.
    pub(super) async fn keep_lease(&self, held: &mut HeldLease, until: Timestamp) -> Result<(), StoreError> {
        self.while_held(held, sleep(until.since(self.clock.now()))).await
    }

    /// Make a lease last its full time again.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when this controller holds it no longer.
    pub(super) async fn renew_lease(&self, held: &mut HeldLease) -> Result<(), StoreError> {
        held.until = self.renewed(held.lease).await?;
        Ok(())
    }

    /// Do `action` while the lease lasts. It is renewed meanwhile. Once nothing is left of it, whatever happened to this process
    /// meanwhile, nothing of the action is done until the store has renewed it: then no other controller has had the lease.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when this controller does not hold the lease.
    pub(super) async fn while_held<T>(
        &self,
        held: &mut HeldLease,
        action: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        let lease = held.lease;
        if held.until.since(self.clock.now()) < CLOCKS + ENOUGH {
            held.until = self.renewed(lease).await?;
        }
        let until = AtomicI64::new(held.until.0);
        let mut action = pin!(action);
        // Before each poll, not in a second task: after a stop of the process either could be the first to go on.
        let mut guarded = pin!(poll_fn(|context| {
            match Timestamp(until.load(Ordering::Relaxed)).since(self.clock.now()) > CLOCKS {
                true => action.as_mut().poll(context).map(Some),
                false => Poll::Ready(None),
            }
        }));
        let mut renewing = pin!(self.keep_renewed(lease, &until));
        let ended = loop {
            tokio::select! {
                biased;
                outcome = &mut guarded => match outcome {
                    Some(outcome) => break Ok(outcome),
                    None => {
                        if let Some(lost) = self.renew_once(lease, &until).await {
                            break Err(lost);
                        }
                    }
                },
                lost = &mut renewing => break Err(lost),
                () = sleep(LOOK_EVERY) => {}
            }
        };
        held.until = Timestamp(until.load(Ordering::Relaxed));
        ended
    }

    /// Renew a lease until it is lost.
    async fn keep_renewed(&self, lease: Lease, until: &AtomicI64) -> StoreError {
        loop {
            sleep(RENEW_EVERY).await;
            if let Some(lost) = self.renew_once(lease, until).await {
                return lost;
            }
        }
    }

    /// Try to renew a lease; the error if it is lost.
    async fn renew_once(&self, lease: Lease, until: &AtomicI64) -> Option<StoreError> {
        match self.renewed(lease).await {
            Ok(next) => until.store(next.0, Ordering::Relaxed),
            Err(lost @ StoreError::Stale(_)) => return Some(lost),
            Err(error) => {
                tracing::warn!(node_uuid = %lease.node, error = %error.chain(), "cannot renew the lease; trying again");
                sleep(LOOK_EVERY).await;
            }
        }
        None
    }

    /// Renew a lease; until when it lasts now.
    async fn renewed(&self, lease: Lease) -> Result<Timestamp, StoreError> {
        // The time before the store was asked: the lease lasts no shorter than is believed here.
        let until = self.clock.now().after(LEASE);
        let is_held = self.store.renew_lease(lease, until).await?;
        is_held.then_some(until).ok_or(StoreError::Stale(lease.node))
    }

    /// Give a lease back.
    pub(super) async fn release_lease(&self, held: HeldLease) {
        let Lease { node, .. } = held.lease;
        if let Err(error) = self.store.release_lease(held.lease).await {
            tracing::warn!(node_uuid = %node, error = %error.chain(), "cannot release the lease; it will expire");
        }
    }
}
