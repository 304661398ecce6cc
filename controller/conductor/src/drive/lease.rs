//! The lease that a pass holds, and those that an earlier process of this controller left behind.
//!
//! A lease is short, so that another controller soon goes on where this one died, and it is renewed while an action goes on.
//! Store and agents refuse what comes under a lease that was taken over. A BMC and ironic-python-agent cannot: a call to them
//! is sent only while more of the lease is left than the call may take, so it has ended before anyone else holds the lease.

use super::conductor::Conductor;
use model::Timestamp;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;
use std::time::Duration;
use store::{Lease, StoreError};
use tokio::time::sleep;
use uuid::Uuid;

/// How long a lease is taken for, beyond what the calls of an action may take.
const LEASE: Duration = Duration::from_secs(12);
/// As much of that is left when an action begins, or the lease is renewed first. Not renewed each time, because that is a
/// write, and a step is two actions.
const ENOUGH: Duration = Duration::from_secs(6);
/// By how much the clocks of two controllers may differ: each goes by that of the store, but for the way there and back.
const CLOCKS: Duration = Duration::from_secs(1);
/// How often it is renewed while an action goes on.
const RENEW_EVERY: Duration = Duration::from_secs(3);
/// How often what is left of it is looked at while the store does not answer.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A lease that was taken, and until when it lasts.
#[derive(Debug)]
pub struct HeldLease {
    /// The lease.
    pub lease: Lease,
    until: Timestamp,
}

impl Conductor {
    /// Release leases that an earlier process of this name held when it was killed. A node at rest that nothing wakes
    /// would stay locked for users until its lease runs out.
    pub(super) async fn release_stale_leases(&self) {
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
        let until = now.after(LEASE);
        let taken = self.store.take_lease(node, self.members.own(), now, until).await?;
        Ok(taken.map(|lease| HeldLease { lease, until }))
    }

    /// Make a lease last its full time again.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when this controller holds it no longer.
    pub(super) async fn renew_lease(&self, held: &mut HeldLease) -> Result<(), StoreError> {
        held.until = self.renewed(held.lease, Duration::ZERO).await?;
        Ok(())
    }

    /// Do `action`, whose calls may take as long as `call` each, while the lease lasts. It is renewed meanwhile. Once no more
    /// than `call` is left of it, whatever happened to this process meanwhile, nothing of the action is done until the store has
    /// renewed it: then no other controller has had the lease.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when this controller does not hold the lease.
    pub(super) async fn while_held<T>(
        &self,
        held: &mut HeldLease,
        call: Duration,
        action: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        let lease = held.lease;
        if held.until.since(self.clock.now()) < call + CLOCKS + ENOUGH {
            held.until = self.renewed(lease, call).await?;
        }
        let until = AtomicI64::new(held.until.0);
        let mut action = pin!(action);
        // Before each poll, not in a second task: after a stop of the process either could be the first to go on.
        let mut guarded = pin!(poll_fn(|context| {
            match Timestamp(until.load(Ordering::Relaxed)).since(self.clock.now()) > call + CLOCKS {
                true => action.as_mut().poll(context).map(Some),
                false => Poll::Ready(None),
            }
        }));
        let mut renewing = pin!(self.keep_renewed(lease, call, &until));
        let ended = loop {
            tokio::select! {
                biased;
                outcome = &mut guarded => match outcome {
                    Some(outcome) => break Ok(outcome),
                    None => match self.renew_once(lease, call, &until).await {
                        Some(lost) => break Err(lost),
                        None => {}
                    },
                },
                lost = &mut renewing => break Err(lost),
                () = sleep(LOOK_EVERY) => {}
            }
        };
        held.until = Timestamp(until.load(Ordering::Relaxed));
        ended
    }

    /// Renew a lease until it is lost.
    async fn keep_renewed(&self, lease: Lease, call: Duration, until: &AtomicI64) -> StoreError {
        loop {
            sleep(RENEW_EVERY).await;
            if let Some(lost) = self.renew_once(lease, call, until).await {
                return lost;
            }
        }
    }

    /// Try to renew a lease; the error if it is lost.
    async fn renew_once(&self, lease: Lease, call: Duration, until: &AtomicI64) -> Option<StoreError> {
        match self.renewed(lease, call).await {
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
    async fn renewed(&self, lease: Lease, call: Duration) -> Result<Timestamp, StoreError> {
        // The time before the store was asked: the lease lasts no shorter than is believed here.
        let until = self.clock.now().after(call + CLOCKS + LEASE);
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
