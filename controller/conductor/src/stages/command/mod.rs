//! One step that the agent runs, as a command: sent until the agent has it (`dispatch`), watched until it ends (`watch`, asked
//! as often as `pace` says), its result checked and stored (`result`; of an erase or a deployment against its `evidence`).
//!
//! The agent answers a command id that it knows with the same command, so sending is repeated until it is acknowledged.
//! The wait ends otherwise if the node rebooted or lost power, if the agent was restarted (`interruption`), if the agent
//! is silent (`silence`), or if the step hangs (`hang`).

mod deployment;
mod dispatch;
mod erase_report;
mod evidence;
mod hang;
mod interruption;
mod issued;
mod pace;
mod result;
mod silence;
mod watch;

use super::fail;
use super::view::View;
use super::wait::unexpected;
use crate::agents;
use crate::decision::{Action, Change, Decision, Outcome};
use agent_protocol::command::Status;
use issued::Issued;
use model::PowerState;
use serde_json::Value;

pub(super) fn decide(view: &View) -> Decision {
    let Some(issued) = Issued::of(view) else {
        let text = "internal: the command that was issued has no step in the plan";
        return Decision::Record(Box::new(fail::failed(view, text)));
    };
    if view.snapshot.contact.callback_url.is_none() {
        return Decision::Record(Box::new(interruption::by_lost_contact(view)));
    }
    let change = interruption::by_another_agent(view, &issued)
        .or_else(|| aborted_unstopped(view, &issued))
        .or_else(|| silence::judged(view, &issued));
    match change {
        Some(change) => Decision::Record(Box::new(change)),
        None if issued.accepted => watch::decide(view, &issued),
        None => dispatch::decide(view, &issued),
    }
}

/// The step is interrupted because another agent, or another fetch of the boot script, claims the node.
pub(super) fn claimed(view: &View, what: &str) -> Change {
    interruption::by_rival(view, what)
}

/// A user aborts a step that could be stopped, but the agent cannot stop it: the run is aborted at once.
fn aborted_unstopped(view: &View, issued: &Issued) -> Option<Change> {
    let can_cancel = agents::of(&view.snapshot.contact).can_cancel();
    (view.run.abort && issued.step.step.abortable && !can_cancel).then(|| fail::aborted(view))
}

pub(super) fn apply_outcome(view: &View, action: &Action, outcome: Outcome) -> Change {
    // If the agent reports that the command has ended, that is its result, however late it comes.
    let has_ended = matches!(&outcome, Outcome::Command(status) if status.command_status != Status::Running);
    let last_attempt = !has_ended && view.run.attempts + 1 >= view.settings.max_attempts;
    if let Some(text) = view.run.hung.as_ref().filter(|_| last_attempt) {
        let text = format!("{text}; it could not be stopped");
        return fail::step_failed(view, &text, Value::Null);
    }
    match (action, outcome) {
        (_, Outcome::Command(status)) => result::reported(view, status),
        (Action::ReadPower, Outcome::Power(PowerState::Off)) => interruption::by_power_loss(view),
        (Action::ReadPower, Outcome::Power(_) | Outcome::PowerUnknown) => watch::again(view, None),
        (Action::SendStep { .. }, Outcome::Busy(text)) if view.run.attempts < view.settings.max_attempts => {
            watch::again(view, Some(text))
        }
        (_, Outcome::NoSuchCommand) => interruption::by_unknown_command(view),
        (_, Outcome::Failed(error)) if error.retryable => watch::again(view, Some(error.text)),
        (_, Outcome::Failed(error)) => fail::step_failed(view, &error.text, Value::Null),
        (_, Outcome::Busy(text)) => fail::step_failed(view, &text, Value::Null),
        (action, other) => {
            fail::step_failed(view, &unexpected(&format!("{action:?}"), &other).text, Value::Null)
        }
    }
}
