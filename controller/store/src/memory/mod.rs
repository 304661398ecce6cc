//! The store in memory: for simulations and tests, and the plainest statement of what a store does.
//!
//! All state lies under one mutex and every call takes it once, so every call is atomic. Nothing survives the
//! process.

mod agents;
mod conductor;
mod discovery;
mod events;
mod nodes;
mod resources;
mod state;

use crate::bell::Bell;
use state::State;
use std::sync::{Mutex, MutexGuard};

/// A [`Store`](crate::Store) that lives as long as the value.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    bell: Bell,
    is_shared: bool,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store that several controllers use, as tests of them need it.
    pub fn shared() -> Self {
        Self { is_shared: true, ..Self::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
