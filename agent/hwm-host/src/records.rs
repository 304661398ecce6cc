//! What went wrong with a manager, for operators: in the agent's log, and in the inventory.

use agent_protocol::inventory::ManagerRecord;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Records of one manager that are kept; what comes after is in the log alone.
const KEPT: usize = 32;
/// Longest text, in characters.
const LONGEST: usize = 512;

/// The records of one manager, oldest first.
#[derive(Debug, Default)]
pub(super) struct Records(Mutex<Vec<ManagerRecord>>);

impl Records {
    /// Write something down, once.
    pub(super) fn note(&self, manager: &str, what: &str) {
        let what: String = what.chars().take(LONGEST).collect();
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if records.iter().any(|record| record.what == what) {
            return;
        }
        tracing::warn!(manager, what, "hardware manager");
        if records.len() < KEPT {
            let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
            records.push(ManagerRecord { at, what });
        }
    }

    /// All that are kept.
    pub(super) fn all(&self) -> Vec<ManagerRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
