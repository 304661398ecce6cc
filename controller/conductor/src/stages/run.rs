//! States with a run: walk its cursor ([`model::run`]). One engine for cleaning, deployment, service,
//! inspection, rescue and tear-down; what differs is in [`model::kind`].

use super::{boot, end, fail, inspecting, issued, learn, out_of_band, start, steps};
use crate::decision::{Action, ActionError, Change, Decision, Outcome, Snapshot};
use crate::settings::Settings;
use model::run::{Cursor, Run};
use std::time::Duration;

/// The snapshot together with its run.
pub(super) struct View<'a> {
    pub snapshot: &'a Snapshot,
    pub settings: &'a Settings,
    pub run: &'a Run,
}

pub(super) fn decide(snapshot: &Snapshot, settings: &Settings) -> Decision {
    // A run that ended leaves the state in the same write; meeting it here is a defect, and fails closed.
    let Some(run) = snapshot.node.run.as_ref().filter(|run| run.is_active()) else {
        return Decision::Record(Box::new(fail::without_run(snapshot)));
    };
    let view = View { snapshot, settings, run };
    // Between steps an abort takes effect at once; during one, that step's file sees that it stops first.
    if run.abort && !matches!(run.cursor, Cursor::Issued { .. } | Cursor::OutOfBand { .. }) {
        return Decision::Record(Box::new(fail::aborted(&view)));
    }
    match &run.cursor {
        Cursor::Start => Decision::Record(Box::new(start::begin(&view))),
        Cursor::PowerOff
        | Cursor::ReadBootDevice
        | Cursor::SetBootDevice
        | Cursor::PowerOn
        | Cursor::AwaitAgent
        | Cursor::RestoreBootDevice
        | Cursor::Reboot => boot::decide(&view),
        Cursor::LearnSteps => learn::decide(&view),
        Cursor::NextStep | Cursor::Hold | Cursor::Pause { .. } => steps::decide(&view),
        Cursor::Issued { .. } => issued::decide(&view),
        Cursor::OutOfBand { .. } => out_of_band::decide(&view),
        Cursor::AskInventory | Cursor::AwaitInventory => inspecting::decide(&view),
        Cursor::TearDown | Cursor::Restart => end::decide(&view),
        Cursor::Done => Decision::Record(Box::new(fail::without_run(snapshot))),
    }
}

pub(super) fn apply_outcome(
    snapshot: &Snapshot,
    action: &Action,
    outcome: Outcome,
    settings: &Settings,
) -> Change {
    let Some(run) = snapshot.node.run.as_ref().filter(|run| run.is_active()) else {
        return fail::without_run(snapshot);
    };
    let view = View { snapshot, settings, run };
    match &run.cursor {
        Cursor::PowerOff
        | Cursor::ReadBootDevice
        | Cursor::SetBootDevice
        | Cursor::PowerOn
        | Cursor::AwaitAgent
        | Cursor::RestoreBootDevice
        | Cursor::Reboot => boot::apply_outcome(&view, action, outcome),
        Cursor::LearnSteps => learn::apply_outcome(&view, outcome),
        Cursor::Issued { .. } => issued::apply_outcome(&view, action, outcome),
        Cursor::OutOfBand { .. } => out_of_band::apply_outcome(&view, action, outcome),
        Cursor::AskInventory => inspecting::apply_outcome(&view, outcome),
        Cursor::TearDown | Cursor::Restart => end::apply_outcome(&view, action, outcome),
        Cursor::Start
        | Cursor::NextStep
        | Cursor::Hold
        | Cursor::Pause { .. }
        | Cursor::AwaitInventory
        | Cursor::Done => fail::failed(&view, &super::unexpected(&format!("{action:?}"), &outcome).text),
    }
}

impl View<'_> {
    /// The node with its run changed, ready to be looked at again at once.
    pub fn with_run(&self, change: impl FnOnce(&mut Run)) -> Change {
        let mut node = self.snapshot.node.clone();
        if let Some(run) = &mut node.run {
            change(run);
        }
        node.wait = None;
        node.next_wake_at = Some(self.snapshot.now);
        Change::of(node)
    }

    /// The run at another place, its count of failures reset.
    pub fn advance(&self, cursor: Cursor) -> Change {
        self.with_run(|run| {
            run.cursor = cursor;
            run.attempts = 0;
        })
    }

    /// An action failed: try again after a pause, or give the run up.
    pub fn retry_or_fail(&self, error: ActionError, what: &str) -> Change {
        let attempts = self.run.attempts + 1;
        if !error.retryable || attempts >= self.settings.max_attempts {
            return fail::failed(self, &format!("{what}: {}", error.text));
        }
        let mut change = self.with_run(|run| run.attempts = attempts);
        change.node.wait = self.snapshot.node.wait.clone();
        change.node.last_error = Some(error.text);
        change.node.next_wake_at = Some(self.snapshot.now.after(self.settings.retry_pause()));
        change
    }

    /// The budget of the present state; the BMC's where the state itself has none.
    pub fn budget(&self) -> Duration {
        let state = self.snapshot.node.provision_state;
        self.settings.budget(state).unwrap_or(Duration::from_secs(self.settings.power_timeout_s))
    }

    /// How long the BMC may take to show what it was asked for.
    pub fn power_budget(&self) -> Duration {
        Duration::from_secs(self.settings.power_timeout_s)
    }
}
