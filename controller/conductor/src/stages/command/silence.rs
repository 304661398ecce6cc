//! An agent that does not answer: when it counts as lost, and when the node boots again because another agent asks.

use super::issued::Issued;
use super::{hang, interruption};
use crate::agents;
use crate::decision::Change;
use crate::stages::view::View;
use crate::stages::{fail, second_agent};
use model::Timestamp;
use serde_json::Value;

/// What becomes of a command whose agent does not answer. Answers count as well as heartbeats: an agent is judged only
/// after it missed a request and the BMC reported that the node has power.
pub(super) fn judged(view: &View, issued: &Issued) -> Option<Change> {
    if view.run.attempts < 2 || view.run.hung.is_some() {
        return None;
    }
    let (at, snapshot) = (issued.sent_to.at, view.snapshot);
    let heard = snapshot.contact.last_heartbeat_at.unwrap_or(at).max(at).max(snapshot.listening_since);
    unheard(view, heard).or_else(|| heard_without_answer(view, issued)).or_else(|| claimed(view, heard))
}

/// No heartbeat for too long.
fn unheard(view: &View, heard: Timestamp) -> Option<Change> {
    let silence = view.snapshot.now.since(heard);
    if silence < view.silence_limit() {
        return None;
    }
    let contact = &view.snapshot.contact;
    let later = contact.rival.as_ref().filter(|rival| rival.at > heard);
    let claim = later.map(|later| format!("; {}", second_agent::refused(contact, later))).unwrap_or_default();
    let text = format!("the agent has not been heard for {} s{claim}", silence.as_secs());
    Some(fail::step_failed(view, &text, Value::Null))
}

/// It sends heartbeats and answers no request, until the step's limits are exceeded.
fn heard_without_answer(view: &View, issued: &Issued) -> Option<Change> {
    let contact = &view.snapshot.contact;
    let heard = contact.last_heartbeat_at.is_some_and(|at| at >= view.snapshot.listening_since);
    if !heard || view.run.attempts < 2 * view.settings.max_attempts {
        return None;
    }
    let reason = hang::reason(view, issued)?;
    let ended = agents::of(contact).has_ended(issued.command_id);
    if issued.accepted && !ended {
        return Some(hang::stop_or_fail(view, issued, reason));
    }
    let what = if ended { "asked how the step ended" } else { "given the step" };
    let text = format!("the agent is heard, but could not be {what}");
    Some(fail::step_failed(view, &text, Value::Null))
}

/// Another agent has asked for the token since this one was heard: the node rebooted, or the agent was restarted, or an
/// impostor asks. It never takes the place of this agent: the node boots again, and the agent of that boot gets a
/// token. A heartbeat, which needs the token, vetoes: claims count only when none came for a quarter of the silence limit. An
/// agent that has really been restarted keeps asking.
fn claimed(view: &View, heard: Timestamp) -> Option<Change> {
    let vetoed_until = heard.after(view.silence_limit() / 4);
    let contact = &view.snapshot.contact;
    let rival = contact.rival.as_ref().filter(|rival| rival.at > vetoed_until && rival.is_certain())?;
    Some(interruption::by_rival(view, &second_agent::describe(contact, rival)))
}
