//! What a node waits for, until when, and whether it is due.

use super::view::View;
use crate::decision::{ActionError, Decision, Outcome, Snapshot};
use model::{Node, Timestamp, Wait};
use std::time::Duration;

/// Whether the stored wake-up time has come. Every write of the conductor rings the bell, so an action that is paced by
/// a pause must check the clock, not the bell.
pub(super) fn is_due(snapshot: &Snapshot) -> bool {
    snapshot.node.next_wake_at.is_none_or(|at| at <= snapshot.now)
}

/// Sleep until the stored wake-up time.
pub(super) fn sleep_on(node: &Node) -> Decision {
    Decision::Sleep { wait: node.wait.clone(), wake_at: node.next_wake_at }
}

/// Sleep in `wait`, at most until its deadline.
pub(super) fn sleep_in(wait: Wait) -> Decision {
    Decision::Sleep { wake_at: wait.deadline, wait: Some(wait) }
}

/// The wait for `reason`: the stored one if the node already waits for this, else a new one that starts now.
pub(super) fn waiting(node: &Node, reason: &str, limit: Option<Duration>, now: Timestamp) -> Wait {
    match &node.wait {
        Some(wait) if wait.reason == reason => wait.clone(),
        _ => Wait { reason: reason.to_owned(), since: now, deadline: limit.map(|limit| now.after(limit)) },
    }
}

/// The wait for an agent to report. Silence is measured from the controller's start at the earliest, so the deadline is
/// never before that start plus the silence limit.
pub(super) fn waiting_for_agent(view: &View, reason: &str, limit: Duration) -> Wait {
    let mut wait = waiting(&view.snapshot.node, reason, Some(limit), view.snapshot.now);
    let earliest = view.snapshot.listening_since.after(view.silence_limit());
    wait.deadline = wait.deadline.max(Some(earliest));
    wait
}

/// Whether a wait is past its deadline.
pub(super) fn is_overdue(wait: &Wait, now: Timestamp) -> bool {
    wait.deadline.is_some_and(|deadline| deadline <= now)
}

/// An outcome that does not belong to its action: a defect of this crate. It is reported as an error that is not
/// retried.
pub(super) fn unexpected(action: &str, outcome: &Outcome) -> ActionError {
    ActionError {
        text: format!("internal: {action} ended with {outcome:?}"),
        retryable: false,
        unreachable: false,
    }
}
