//! A run as a stage sees it: the snapshot, the settings, and the changes that every stage makes.

use crate::decision::{Change, Snapshot};
use crate::settings::Settings;
use model::run::{Cursor, Run};
use std::time::Duration;

/// The snapshot together with its run.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub snapshot: &'a Snapshot,
    pub settings: &'a Settings,
    pub run: &'a Run,
}

impl View<'_> {
    /// The node with its run changed, due at once.
    pub fn with_run(&self, change: impl FnOnce(&mut Run)) -> Change {
        let mut node = self.snapshot.node.clone();
        if let Some(run) = &mut node.run {
            change(run);
        }
        node.wait = None;
        node.next_wake_at = Some(self.snapshot.now);
        Change::of(node)
    }

    /// The run at another cursor, its count of failed attempts reset.
    pub fn advance(&self, cursor: Cursor) -> Change {
        self.with_run(|run| {
            if cursor == Cursor::PowerOff {
                // Whatever runs on the node ends.
                run.ramdisk_kept = None;
            }
            run.cursor = cursor;
            run.attempts = 0;
        })
    }

    /// The time limit of the present provision state; the BMC's limit where the state has none.
    pub fn budget(&self) -> Duration {
        let state = self.snapshot.node.provision_state;
        self.settings.budget(state).unwrap_or(self.power_budget())
    }

    /// How long the BMC may take to report the power state that was requested.
    pub fn power_budget(&self) -> Duration {
        Duration::from_secs(self.settings.power_timeout_s)
    }

    /// How long an agent may be silent.
    pub fn silence_limit(&self) -> Duration {
        Duration::from_secs(self.settings.agent_silence_s)
    }
}
