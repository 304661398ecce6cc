//! A node that boots may lose power. While a boot is waited for, the power state is read from time to time: a node that is
//! off will never report.

use super::second_agent;
use super::view::View;
use super::wait::sleep_in;
use crate::decision::{Action, Change, Decision, Outcome};
use model::{PowerState, Wait};
use std::time::Duration;

/// Pause between two looks at the power state of a node that boots.
const PAUSE: Duration = Duration::from_secs(30);
/// Pause before the second look at a node that was seen off: some firmware switches the node off and on again while it starts.
const SECOND_LOOK: Duration = Duration::from_secs(5);
/// How often in a row a node is seen off before it counts as being without power.
const LOOKS: u32 = 2;

/// Sleep in `wait`, with a look at the power state every [`PAUSE`]; without one where the BMC reports no power state.
pub(super) fn sleep_or_look(view: &View, wait: Wait) -> Decision {
    let (node, now) = (&view.snapshot.node, view.snapshot.now);
    if node.power_state != Some(PowerState::On) {
        return sleep_in(wait);
    }
    let waits_already = node.wait.as_ref().is_some_and(|stored| stored.reason == wait.reason);
    let look = node.next_wake_at.filter(|_| waits_already).unwrap_or(now.after(PAUSE));
    if look <= now {
        return Decision::Act(Action::ReadPower);
    }
    let wake_at = wait.deadline.map_or(look, |deadline| look.min(deadline));
    Decision::Sleep { wait: Some(wait), wake_at: Some(wake_at) }
}

/// What a look showed.
pub(super) enum PowerCheck {
    /// The node has no power.
    Off,
    /// Nothing that ends the wait.
    Waits(Box<Change>),
}

/// The outcome of a look. A BMC that does not answer shows nothing.
pub(super) fn looked(view: &View, outcome: &Outcome) -> PowerCheck {
    let (node, now) = (&view.snapshot.node, view.snapshot.now);
    let seen_off = if *outcome == Outcome::Power(PowerState::Off) { view.run.attempts + 1 } else { 0 };
    if seen_off >= LOOKS {
        return PowerCheck::Off;
    }
    let mut change = view.with_run(|run| run.attempts = seen_off);
    change.node.wait = node.wait.clone();
    change.node.next_wake_at = Some(now.after(if seen_off > 0 { SECOND_LOOK } else { PAUSE }));
    PowerCheck::Waits(Box::new(change))
}

/// The outcome of a look at a node that boots the ramdisk: without power it boots again.
pub(super) fn while_booting(view: &View, outcome: &Outcome) -> Change {
    match looked(view, outcome) {
        PowerCheck::Waits(change) => *change,
        PowerCheck::Off => boots_again(view, "the node lost power while it booted"),
    }
}

/// The node is off, for this reason, and no step of its agent runs: it boots the ramdisk again.
pub(super) fn boots_again(view: &View, text: &str) -> Change {
    let mut change = second_agent::boot_again(view, text);
    change.node.power_state = Some(PowerState::Off);
    change
}
