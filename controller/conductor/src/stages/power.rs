//! The BMC has accepted a change of power and does not report it yet.

use super::fail;
use super::view::View;
use super::wait::{is_overdue, waiting};
use crate::decision::{Change, Outcome};
use model::PowerState;
use std::time::Duration;

/// The power state in this outcome, where it is one of a power action.
pub(super) fn reported(outcome: &Outcome) -> Option<Option<PowerState>> {
    match outcome {
        Outcome::Power(state) => Some(Some(*state)),
        Outcome::PowerUnknown => Some(None),
        _ => None,
    }
}

/// Look again in a second, until the BMC's time limit has passed.
pub(super) fn power_pending(view: &View, state: Option<PowerState>, wanted: PowerState) -> Change {
    let now = view.snapshot.now;
    let reason = format!("the BMC to report {}", wanted.as_str());
    let limit = view.power_budget();
    let mut wait = waiting(&view.snapshot.node, &reason, Some(limit), now);
    // Do not charge time in which the controller was down to the BMC's deadline.
    if let (Some(stored), Some(planned)) = (&view.snapshot.node.wait, view.snapshot.node.next_wake_at)
        && *stored == wait
    {
        wait.deadline = wait.deadline.map(|deadline| deadline.after(now.since(planned)));
    }
    if is_overdue(&wait, now) {
        let text = format!(
            "the BMC accepted {} but reports {} for {} s",
            wanted.as_str(),
            state.map_or("no power state", PowerState::as_str),
            limit.as_secs()
        );
        let mut change = fail::failed(view, &text);
        change.node.power_state = state;
        return change;
    }
    let mut change = view.with_run(|_| {});
    change.node.power_state = state.or(change.node.power_state);
    change.node.wait = Some(wait);
    change.node.next_wake_at = Some(now.after(Duration::from_secs(1)));
    change
}
