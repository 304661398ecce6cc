//! An agent that does not answer: when it counts as lost, and when another agent on the node is given its place.

use super::issued::Issued;
use super::{hang, interruption};
use crate::agents;
use crate::decision::{Change, Decision};
use crate::stages::boot::reissue_token;
use crate::stages::fail;
use crate::stages::view::View;
use crate::stages::wait::{is_overdue, sleep_in, waiting_for_agent};
use model::Timestamp;
use model::history::{EventKind, Severity};
use model::request::event;
use serde_json::Value;

/// What becomes of a command whose agent does not answer. Answers count as well as heartbeats: an agent is judged only
/// after it missed a request and the BMC reported that the node has power.
pub(super) fn judged(view: &View, issued: &Issued) -> Option<Change> {
    if view.run.attempts < 2 || view.run.hung.is_some() {
        return None;
    }
    let (at, snapshot) = (issued.sent_to.at, view.snapshot);
    let heard = snapshot.contact.last_heartbeat_at.unwrap_or(at).max(at).max(snapshot.listening_since);
    unheard(view, heard)
        .or_else(|| heard_without_answer(view, issued))
        .or_else(|| replaced(view, issued, heard))
}

/// No heartbeat for too long.
fn unheard(view: &View, heard: Timestamp) -> Option<Change> {
    let silence = view.snapshot.now.since(heard);
    if silence < view.silence_limit() {
        return None;
    }
    let refused = view.snapshot.contact.rival.as_ref().is_some_and(|rival| rival.at > heard);
    let rival = if refused { "; a lookup of its node was refused since: a boot gets one token" } else { "" };
    let text = format!("the agent has not been heard for {} s{rival}", silence.as_secs());
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

/// Another agent has asked for the token since it was heard: the node rebooted, or the agent was restarted.
fn replaced(view: &View, issued: &Issued, heard: Timestamp) -> Option<Change> {
    let contact = &view.snapshot.contact;
    let agent = agents::of(contact);
    let late = agent.late_lookup_window(view.silence_limit());
    if contact.rival.as_ref().is_none_or(|rival| rival.at <= heard.after(late)) {
        return None;
    }
    if agent.process_id().is_none() && (!issued.accepted || !issued.step.step.idempotent) {
        // The next ironic-python-agent could not be distinguished from this one. Without a token it asks once and then
        // stops for good, so no agent would come back.
        return Some(interruption::by_rival(view));
    }
    let text = "the agent does not answer and another asks for its token: the node rebooted";
    let mut change = view.advance(view.run.cursor.clone());
    change.events.push(event(EventKind::Agent, Severity::Info, text.into(), view.snapshot.now));
    change.forget_agent = true;
    Some(change)
}

/// The agent was forgotten because it was silent while another one asked for its token: wait for that one.
pub(super) fn await_return(view: &View, issued: &Issued) -> Decision {
    if let Some(change) = reissue_token(view) {
        return Decision::Record(Box::new(change));
    }
    let reason = format!("an agent to come back: the node was lost during {}", issued.step.label());
    let limit = view.budget();
    let wait = waiting_for_agent(view, &reason, limit);
    if is_overdue(&wait, view.snapshot.now) {
        let text = format!(
            "the agent did not answer, another asked for its token, and no agent came back within {} s",
            limit.as_secs()
        );
        return Decision::Record(Box::new(fail::step_failed(view, &text, Value::Null)));
    }
    sleep_in(wait)
}
