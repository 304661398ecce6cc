//! The node or its agent went away in the middle of the step. Only a step that is declared idempotent is run again, and
//! only `max_interruptions` times in a row without progress.

use super::issued::Issued;
use crate::agents;
use crate::decision::Change;
use crate::stages::fail;
use crate::stages::transition::at_work;
use crate::stages::view::View;
use model::run::Cursor;
use serde_json::Value;

/// The agent that is heard is not the one that the command was stored for.
pub(super) fn by_another_agent(view: &View, issued: &Issued) -> Option<Change> {
    let contact = &view.snapshot.contact;
    let what = agents::of(contact).interruption(contact, issued.sent_to)?;
    Some(interrupted(view, what, Cursor::LearnSteps))
}

/// The node boots again because of a second agent, or a second fetch of the boot script.
pub(super) fn by_rival(view: &View, what: &str) -> Change {
    interrupted(view, what, Cursor::PowerOff)
}

/// The controller has no address of the agent that the command was stored for.
pub(super) fn by_lost_contact(view: &View) -> Change {
    interrupted(view, "the controller does not know the agent any more", Cursor::PowerOff)
}

/// The agent has forgotten the command.
pub(super) fn by_unknown_command(view: &View) -> Change {
    let what = "the agent was restarted: it no longer knows the command it had accepted";
    interrupted(view, what, Cursor::LearnSteps)
}

/// The BMC reports that the node is off.
pub(super) fn by_power_loss(view: &View) -> Change {
    interrupted(view, "the node lost power", Cursor::PowerOff)
}

/// The step has done its part, and can be judged only after a reboot, with this checkpoint.
pub(super) fn by_request(view: &View, why: &str, checkpoint: Value) -> Change {
    let what = format!("the step asked for a reboot ({why})");
    let mut change = interrupted(view, &what, Cursor::PowerOff);
    if let Some(run) = &mut change.node.run {
        run.keep_checkpoint(checkpoint);
    }
    change
}

/// Run the step again from `cursor` on, or fail it.
fn interrupted(view: &View, what: &str, cursor: Cursor) -> Change {
    let Some(step) = view.run.current() else {
        return fail::failed(view, &format!("{what}, and the plan has no current step"));
    };
    if let Some(text) = &view.run.hung {
        return fail::step_failed(view, &format!("{text}; then {what}"), Value::Null);
    }
    let mut run = view.run.clone();
    run.interrupt();
    let text = format!("{what} in the middle of the step (interruption {})", run.interruptions);
    if !step.step.idempotent {
        let text = format!("{text}; the step does not say that it may be repeated");
        return fail::step_failed(view, &text, Value::Null);
    }
    if run.fruitless > view.settings.max_interruptions {
        return fail::step_failed(view, &text, Value::Null);
    }
    let mut change = view.advance(cursor);
    if let Some(run) = &mut change.node.run {
        run.interrupt();
    }
    let again =
        if view.run.resumes_from().is_some() { "goes on from its checkpoint" } else { "is started again" };
    at_work(&mut change, &format!("{text}; {} {again}", step.label()), view.snapshot.now);
    change
}
