//! The task that drives one node.

use super::conductor::Conductor;
use super::panics;
use super::pass::Pass;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Holds the mark that a node is in a pass. Dropped in a panic it takes the mark away, so that the node can be driven
/// again.
pub struct Worker {
    conductor: Arc<Conductor>,
    node: Option<Uuid>,
}

impl Worker {
    /// The worker of a node that has been marked as in a pass.
    pub fn of(conductor: Arc<Conductor>, node: Uuid) -> Self {
        Self { conductor, node: Some(node) }
    }

    /// Drive the node until it sleeps and its bell has not rung meanwhile.
    pub async fn drive(mut self, node: Uuid, places: &Semaphore, stop: &CancellationToken) {
        let mut pass = Pass::of(node);
        let mut panics = 0;
        loop {
            let place = places.acquire().await;
            match panics::caught(Box::pin(self.conductor.pass(&mut pass))).await {
                Ok(()) => panics = 0,
                Err(panic) => {
                    Box::pin(self.conductor.after_panic(&mut pass, &mut panics, &panic)).await;
                    drop(place);
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(panics::pause(&self.conductor.settings)) => continue,
                    }
                }
            }
            if self.has_ended() {
                return;
            }
        }
    }

    /// Take the mark away, unless the bell rang since it was set.
    fn has_ended(&mut self) -> bool {
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
