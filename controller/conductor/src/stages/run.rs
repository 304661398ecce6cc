//! States with a run: dispatch on its cursor ([`model::run`]). One engine for cleaning, deployment, service,
//! inspection, rescue and tear-down; what differs is in [`model::kind`].

use super::view::View;
use super::wait::unexpected;
use super::{
    agent_steps, boot, command, end, fail, hello, inspecting, next_step, out_of_band, second_agent, start,
};
use crate::decision::{Action, Change, Decision, Outcome, Snapshot};
use crate::settings::Settings;
use model::run::Cursor;

pub(super) fn decide(snapshot: &Snapshot, settings: &Settings) -> Decision {
    // The write that ends a run also leaves the state. A state without an active run is a defect and fails closed.
    let Some(run) = snapshot.node.run.as_ref().filter(|run| run.is_active()) else {
        return Decision::Record(Box::new(fail::without_run(snapshot)));
    };
    let view = View { snapshot, settings, run };
    // Between steps an abort takes effect at once; during a step, the step's own stage stops it first.
    if run.abort && !matches!(run.cursor, Cursor::Issued { .. } | Cursor::OutOfBand { .. }) {
        return Decision::Record(Box::new(fail::aborted(&view)));
    }
    if let Some(change) = claimed(&view) {
        return Decision::Record(Box::new(change));
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
        Cursor::LearnSteps => agent_steps::decide(&view),
        Cursor::NextStep | Cursor::Hold | Cursor::Pause { .. } => next_step::decide(&view),
        Cursor::Issued { .. } => command::decide(&view),
        Cursor::OutOfBand { .. } => out_of_band::decide(&view),
        Cursor::AwaitHello { .. } => hello::decide(&view),
        Cursor::AskInventory | Cursor::AwaitInventory => inspecting::decide(&view),
        Cursor::TearDown | Cursor::Restart => end::decide(&view),
        Cursor::Done => Decision::Record(Box::new(fail::without_run(snapshot))),
    }
}

/// The node boots again because its boot script was fetched from two addresses.
fn claimed(view: &View) -> Option<Change> {
    match &view.run.cursor {
        Cursor::Issued { .. } => Some(command::claimed(view, &second_agent::while_booting(view)?)),
        Cursor::RestoreBootDevice | Cursor::LearnSteps | Cursor::NextStep => {
            Some(second_agent::boot_again(view, &second_agent::while_booting(view)?))
        }
        _ => None,
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
        Cursor::LearnSteps => agent_steps::apply_outcome(&view, action, outcome),
        Cursor::Issued { .. } => command::apply_outcome(&view, action, outcome),
        Cursor::OutOfBand { .. } => out_of_band::apply_outcome(&view, action, outcome),
        Cursor::AwaitHello { .. } => hello::apply_outcome(&view, action, outcome),
        Cursor::AskInventory | Cursor::AwaitInventory => inspecting::apply_outcome(&view, action, outcome),
        Cursor::TearDown | Cursor::Restart => end::apply_outcome(&view, action, outcome),
        Cursor::Start | Cursor::NextStep | Cursor::Hold | Cursor::Pause { .. } | Cursor::Done => {
            fail::failed(&view, &unexpected(&format!("{action:?}"), &outcome).text)
        }
    }
}
