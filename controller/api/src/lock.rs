//! The lock of a node.
//!
//! Ironic's conductor holds it from a request that it accepts until what was asked for is done. Here a conductor takes a lease
//! while it works on a node, some time after the answer 202. So a change of power that is accepted and not carried out locks
//! the node as a lease does. A request that needs the node unlocked waits, reads the node again, and decides.

use crate::call::Call;
use crate::error::ApiError;
use model::Node;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

/// What locks a node for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// A conductor that works on it, or a change of its power that is still to be carried out.
    Held,
    /// Only the latter. Where a conductor merely looks at the node, the version of its row protects what is written.
    PowerChange,
}

impl Lock {
    /// The host that has locked the node.
    pub async fn holder(self, call: &Call, node: &Node) -> Result<Option<String>, ApiError> {
        if self == Self::PowerChange && node.target_power_state.is_none() {
            return Ok(None);
        }
        let leased = call.app.store.lease_holder(node.uuid, call.now()).await?;
        Ok(Self::host(call, node, leased))
    }

    /// The host that has locked a node of which this one has a lease.
    pub fn host(call: &Call, node: &Node, leased: Option<String>) -> Option<String> {
        let pending = node.target_power_state.is_some();
        leased.or_else(|| pending.then(|| call.app.members.own().to_owned()))
    }

    /// The node once it is not locked, read after that.
    ///
    /// # Errors
    /// 409: it still is after [`LONGEST`](crate::lock_waits::LONGEST), or too many requests wait.
    pub async fn opened(self, call: &Call, node: Node) -> Result<Node, ApiError> {
        let Some(host) = self.holder(call, &node).await? else { return Ok(node) };
        let uuid = node.uuid;
        let mut waiting = LockWait::begin(call).ok_or_else(|| ApiError::locked(uuid, &host))?;
        let mut in_time = true;
        loop {
            let node = call.app.store.node(uuid).await?;
            let Some(host) = self.holder(call, &node).await? else { return Ok(node) };
            if !in_time {
                return Err(ApiError::locked(uuid, &host));
            }
            // Looked at once more when the time is over: a lease that expires rings no bell.
            in_time = waiting.next(|rung| rung == uuid).await.is_some();
        }
    }
}

/// One of the requests that wait, and what it hears.
pub struct LockWait {
    rings: UnboundedReceiver<Uuid>,
    until: Instant,
    _place: OwnedSemaphorePermit,
}

impl LockWait {
    /// `None` where too many wait. What changed before is not heard: read the node again after this.
    pub fn begin(call: &Call) -> Option<Self> {
        let place = call.app.lock_waits.begin()?;
        let rings = call.app.store.bell().listen_for_locks();
        Some(Self { rings, until: call.waits_until(), _place: place })
    }

    /// The next node that changed, or whose lease was released, of those that count; `None` when the time is over.
    pub async fn next(&mut self, counts: impl Fn(Uuid) -> bool) -> Option<Uuid> {
        loop {
            let rung = timeout_at(self.until, self.rings.recv()).await.ok().flatten()?;
            if counts(rung) {
                return Some(rung);
            }
        }
    }
}
