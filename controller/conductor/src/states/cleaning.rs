//! CLEANING and CLEANWAIT: walk the cursor of the run ([`model::run`]).

use super::{boot, end, steps};
use crate::decision::{Change, Decision, Deed, Outcome, Snapshot};
use crate::settings::Settings;
use model::run::{Cursor, Run};

/// The snapshot together with its run.
pub(super) struct View<'a> {
    pub snapshot: &'a Snapshot,
    pub settings: &'a Settings,
    pub run: &'a Run,
}

pub(super) fn decide(snapshot: &Snapshot, settings: &Settings) -> Decision {
    let Some(run) = &snapshot.node.run else {
        return Decision::Record(Box::new(end::without_run(snapshot)));
    };
    let view = View { snapshot, settings, run };
    // Between steps an abort takes effect at once; during one, `steps` sees that the step stops first.
    if run.abort && !matches!(run.cursor, Cursor::Issued { .. }) {
        return Decision::Record(Box::new(end::aborted(&view)));
    }
    match &run.cursor {
        Cursor::PowerOff | Cursor::SetBootDevice | Cursor::PowerOn | Cursor::AwaitAgent => {
            boot::decide(&view)
        }
        Cursor::LearnSteps | Cursor::NextStep | Cursor::Issued { .. } => steps::decide(&view),
        Cursor::TearDown => end::decide(&view),
        // A run that ended leaves the state in the same write; meeting it here is a defect, and fails closed.
        Cursor::Done => Decision::Record(Box::new(end::without_run(snapshot))),
    }
}

pub(super) fn absorb(snapshot: &Snapshot, deed: &Deed, outcome: Outcome, settings: &Settings) -> Change {
    let Some(run) = &snapshot.node.run else { return end::without_run(snapshot) };
    let view = View { snapshot, settings, run };
    match &run.cursor {
        Cursor::PowerOff | Cursor::SetBootDevice | Cursor::PowerOn | Cursor::AwaitAgent => {
            boot::absorb(&view, deed, outcome)
        }
        Cursor::LearnSteps | Cursor::NextStep | Cursor::Issued { .. } => steps::absorb(&view, deed, outcome),
        Cursor::TearDown | Cursor::Done => end::absorb(&view, outcome),
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

    /// A deed failed: try again after a pause, or give the run up.
    pub fn retry_or_fail(&self, trouble: crate::decision::Trouble, what: &str) -> Change {
        let attempts = self.run.attempts + 1;
        if !trouble.retryable || attempts >= self.settings.max_attempts {
            return end::failed(self, &format!("{what}: {}", trouble.text));
        }
        let mut change = self.with_run(|run| run.attempts = attempts);
        change.node.wait = self.snapshot.node.wait.clone();
        change.node.last_error = Some(trouble.text);
        change.node.next_wake_at = Some(self.snapshot.now.after(self.settings.retry_pause()));
        change
    }
}
