//! The bell: "something about this node changed, look at it". It carries no more than the node's id, so a
//! lost or doubled ring is harmless; what is true is read from the store.

use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use uuid::Uuid;

/// In-process bell. Clones ring the same one.
#[derive(Debug, Clone, Default)]
pub struct Bell {
    listeners: Arc<Mutex<Vec<mpsc::UnboundedSender<Uuid>>>>,
}

impl Bell {
    /// A bell without listeners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ring for a node.
    pub fn ring(&self, node: Uuid) {
        let mut listeners = self.listeners.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        listeners.retain(|listener| listener.send(node).is_ok());
    }

    /// Hear every ring from now on.
    pub fn listen(&self) -> mpsc::UnboundedReceiver<Uuid> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.listeners.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(sender);
        receiver
    }
}
