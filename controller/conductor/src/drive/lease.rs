//! The lease that a pass holds, and those that an earlier process of this controller left behind.

use super::conductor::Conductor;
use model::Timestamp;
use std::time::Duration;
use store::{Lease, StoreError};
use uuid::Uuid;

/// How long a lease is taken for.
const LEASE: Duration = Duration::from_secs(300);
/// As much of it is left when an action begins, or it is renewed first: longer than any action takes (asking an agent
/// for its steps makes three calls of a minute). Not renewed each time, because that is a write, and a step is
/// two actions.
const ENOUGH: Duration = Duration::from_secs(240);

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
        let nodes = match self.store.leased_by(&self.name).await {
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
        if self.store.lease_holder(node, now).await?.as_deref() != Some(&self.name) {
            return Ok(());
        }
        match self.store.take_lease(node, &self.name, now, now.after(LEASE)).await? {
            Some(lease) => self.store.release_lease(lease).await,
            None => Ok(()),
        }
    }

    /// Take the lease of a node; `None` if another controller holds it.
    pub(super) async fn take_lease(&self, node: Uuid) -> Result<Option<HeldLease>, StoreError> {
        let now = self.clock.now();
        let until = now.after(LEASE);
        let taken = self.store.take_lease(node, &self.name, now, until).await?;
        Ok(taken.map(|lease| HeldLease { lease, until }))
    }

    /// Make a lease last its full time again.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when this controller holds it no longer.
    pub(super) async fn renew_lease(&self, held: &mut HeldLease) -> Result<(), StoreError> {
        let until = self.clock.now().after(LEASE);
        if !self.store.renew_lease(held.lease, until).await? {
            return Err(StoreError::Stale(held.lease.node));
        }
        held.until = until;
        Ok(())
    }

    /// The same where too little of it is left for an action.
    pub(super) async fn renew_lease_for_action(&self, held: &mut HeldLease) -> Result<(), StoreError> {
        if held.until.since(self.clock.now()) < ENOUGH { self.renew_lease(held).await } else { Ok(()) }
    }

    /// Give a lease back.
    pub(super) async fn release_lease(&self, held: HeldLease) {
        let Lease { node, .. } = held.lease;
        if let Err(error) = self.store.release_lease(held.lease).await {
            tracing::warn!(node_uuid = %node, error = %error.chain(), "cannot release the lease; it will expire");
        }
    }
}
