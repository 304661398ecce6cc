//! A command that the agent has not acknowledged: send it.

use super::issued::Issued;
use crate::decision::{Action, Decision};
use crate::stages::view::View;
use crate::stages::wait::{is_due, sleep_on};

/// Send it at once; after a failed attempt, after a pause, in turns with reading the power state.
pub(super) fn decide(view: &View, issued: &Issued) -> Decision {
    let attempts = view.run.attempts;
    if attempts > 0 && !is_due(view.snapshot) {
        return sleep_on(&view.snapshot.node);
    }
    Decision::Act(if attempts > 0 && attempts.is_multiple_of(2) {
        Action::ReadPower
    } else {
        Action::SendStep {
            command_id: issued.command_id.to_owned(),
            run: view.run.kind,
            step: Box::new(issued.step.clone()),
        }
    })
}
