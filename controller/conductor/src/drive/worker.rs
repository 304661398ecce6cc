//! The task that drives one node.

use super::conductor::Conductor;
use super::lease::LOOK_EVERY;
use super::panics;
use super::pass::{Later, Pass};
use super::places::{Places, Share};
use std::sync::Arc;
use store::StoreError;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The only driver of a node. While it exists, the node is in `busy.running`, and no second worker is started. When it is
/// dropped early (the process stops, or a defect outside of a pass panics), it takes the node out, so that the node can
/// be driven again.
pub struct Worker {
    conductor: Arc<Conductor>,
    node: Option<Uuid>,
    woken: Arc<Notify>,
}

impl Worker {
    /// The caller has added `node` to `busy.running`, with what wakes the worker.
    pub fn of(conductor: Arc<Conductor>, node: Uuid, woken: Arc<Notify>) -> Self {
        Self { conductor, node: Some(node), woken }
    }

    /// Run passes until one has ended without a ring of the node's bell since the last check. After a panic, pause and
    /// try again; return when the process stops during that pause.
    pub async fn drive(mut self, node: Uuid, places: &Arc<Places>, stop: &CancellationToken) {
        let mut pass = Pass::of(node);
        let mut panics = 0;
        loop {
            let came = Instant::now();
            let place = places.enter(node).await;
            let began = Instant::now();
            let ended = panics::caught(Box::pin(self.conductor.pass(&mut pass))).await;
            if let Some(observer) = self.conductor.observer() {
                observer.pass_ended(began - came, began.elapsed(), ended.is_err());
            }
            match pass.known() {
                Some(known) => places.note(node, Share::of(known)),
                None => places.forget(node),
            }
            match ended {
                Ok(()) => panics = 0,
                Err(panic) => {
                    Box::pin(self.conductor.after_panic(&mut pass, &mut panics, &panic)).await;
                    drop(place);
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(panics::pause(&self.conductor.settings)) => continue,
                    }
                }
            }
            if let Some(later) = pass.later.take() {
                drop(place);
                tokio::select! {
                    // A process that stops extends no lease; and one seed of the simulation stays one story.
                    biased;
                    // A lease that is kept expires, so that the next controller waits, too.
                    () = stop.cancelled() => return,
                    () = self.await_turn(&mut pass, later) => continue,
                }
            }
            if self.finish_unless_woken() {
                return;
            }
        }
    }

    /// Wait until the pass may go on, for others to have the place meanwhile.
    async fn await_turn(&self, pass: &mut Pass, later: Later) {
        match later {
            Later::Held => tokio::time::sleep(LOOK_EVERY).await,
            Later::Settled(at) => {
                let Some(held) = &mut pass.lease else { return };
                match self.conductor.keep_lease(held, at, self.woken.notified()).await {
                    Ok(()) => {}
                    Err(StoreError::Stale(_)) => pass.lease = None,
                    // It is not given up: taken again, it would not say any more that there was another controller before.
                    Err(error) => {
                        tracing::warn!(error = %error.chain(), "cannot renew the lease; trying again");
                        tokio::time::sleep(LOOK_EVERY).await;
                    }
                }
            }
        }
    }

    /// If the bell has rung, note that it was heard and return false. Else take the node out of `busy.running` and
    /// return true.
    fn finish_unless_woken(&mut self) -> bool {
        let conductor = self.conductor.clone();
        let mut busy = conductor.busy();
        let Some(node) = self.node else { return true };
        if busy.again.remove(&node) {
            return false;
        }
        busy.running.remove(&node);
        self.node = None;
        true
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(node) = self.node {
            let mut busy = self.conductor.busy();
            busy.running.remove(&node);
            busy.again.remove(&node);
        }
    }
}
