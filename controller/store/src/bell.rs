//! The bell: "something about this node changed, look at it". It carries no more than the node's id, so a
//! lost or doubled ring is harmless; what is true is read from the store.

use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::mpsc;
use uuid::Uuid;

/// In-process bell. Clones ring the same one.
#[derive(Debug, Clone, Default)]
pub struct Bell {
    /// Of changes.
    changes: Listeners,
    /// Of changes and of leases that are released.
    locks: Listeners,
}

impl Bell {
    /// A bell without listeners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ring for a node that changed.
    pub fn ring(&self, node: Uuid) {
        self.changes.send(node);
        self.locks.send(node);
    }

    /// The lease of a node was released: only those hear it that wait for a node to be unlocked. A pass ends with a release,
    /// which must not start another pass.
    pub fn released(&self, node: Uuid) {
        self.locks.send(node);
    }

    /// Hear every ring from now on.
    pub fn listen(&self) -> mpsc::UnboundedReceiver<Uuid> {
        self.changes.add()
    }

    /// Hear every ring and every release of a lease from now on. A lease that expires is not heard.
    pub fn listen_for_locks(&self) -> mpsc::UnboundedReceiver<Uuid> {
        self.locks.add()
    }
}

/// Those that hear of nodes.
#[derive(Debug, Clone, Default)]
struct Listeners(Arc<Mutex<Vec<mpsc::UnboundedSender<Uuid>>>>);

impl Listeners {
    fn all(&self) -> MutexGuard<'_, Vec<mpsc::UnboundedSender<Uuid>>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn add(&self) -> mpsc::UnboundedReceiver<Uuid> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.all().push(sender);
        receiver
    }

    fn send(&self, node: Uuid) {
        self.all().retain(|listener| listener.send(node).is_ok());
    }
}
