//! A pass that panicked: a defect of this program, which must cost neither the process nor the node.
//!
//! The panic is logged, the lease given back, the pass tried again after a pause. After `max_attempts` panics in a row
//! the run fails with the text of the panic ([`crate::stages::give_up`]). The count is kept by the worker of the node,
//! so a restart of the controller begins it anew.

use super::conductor::Conductor;
use super::pass::Pass;
use crate::decision::Snapshot;
use crate::settings::Settings;
use crate::stages;
use futures_util::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use store::{Noun, StoreError};

/// Shortest pause after a panic, whatever `retry_pause_s` is: a node that panics at once must not spin.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

/// The outcome of a future, or the text of the panic that ended it.
///
/// What a pass shares with others are the store, the executor and `busy`. Each of their locks is used in spite of
/// poison, so nothing stays broken after an unwind.
pub(super) async fn caught<T>(future: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(|panic| text(&*panic))
}

/// How long to wait after a panic.
pub(super) fn pause(settings: &Settings) -> Duration {
    settings.retry_pause().max(SHORTEST_PAUSE)
}

fn text(panic: &(dyn Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = literal.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a text".to_owned())
}

impl Conductor {
    /// Count a panic of a pass; after too many give the run up. The lease is free afterwards, unless it is to be kept.
    pub(super) async fn after_panic(&self, pass: &mut Pass, panics: &mut u32, panic: &str) {
        let node_uuid = pass.node;
        *panics += 1;
        tracing::error!(%node_uuid, panic, panics, "a pass over the node panicked");
        pass.forget_node();
        if *panics >= self.settings.max_attempts {
            match caught(Box::pin(self.give_up(pass, panic))).await {
                Ok(Ok(())) => *panics = 0,
                Ok(Err(error)) => {
                    tracing::error!(%node_uuid, error = %error.chain(), "cannot store that the run failed")
                }
                Err(panic) => tracing::error!(%node_uuid, panic, "storing that the run failed panicked"),
            }
        }
        if let Err(panic) = caught(self.release_settled(pass)).await {
            tracing::error!(%node_uuid, panic, "releasing the lease panicked; it will expire");
        }
    }

    /// Release the lease, unless a call of the controller before may be under way: the controller that takes it next would not know of
    /// the call.
    async fn release_settled(&self, pass: &mut Pass) {
        let settled = pass.lease.take_if(|held| held.unsettled_until(self.clock.now()).is_none());
        if let Some(held) = settled {
            self.release_lease(held).await;
        }
    }

    /// Store that the run failed with this text. Nothing is asked of the driver, which may be what panics.
    async fn give_up(&self, pass: &mut Pass, panic: &str) -> Result<(), StoreError> {
        loop {
            match self.renew(pass).await {
                // None was held, or it is lost. Without one another controller drives the node.
                Err(StoreError::Stale(_)) => pass.lease = self.take_lease(pass.node).await?,
                renewed => renewed?,
            }
            let Some(lease) = pass.lease.as_ref().map(|held| held.lease) else { return Ok(()) };
            let (node, contact) = self.store.look(pass.node, None).await?;
            let node = node.ok_or_else(|| StoreError::not_found(Noun::Node, pass.node))?;
            let abilities = Err("not asked for".to_owned());
            let snapshot = Snapshot::of(node, contact, abilities, self.listening_since(), self.clock.now());
            let text = format!("internal: the controller panicked while it worked on the node: {panic}");
            let change = stages::give_up(&snapshot, &self.settings, &text);
            match self.record(snapshot.node, change, lease).await {
                // The API wrote meanwhile: decide on what it wrote.
                Err(StoreError::Stale(_)) => {}
                recorded => return recorded.map(drop),
            }
        }
    }
}
