//! A step hangs if it exceeds its time limit, or makes no progress for too long, while its agent is heard.

use super::issued::Issued;
use crate::agents;
use crate::decision::Change;
use crate::stages::fail;
use crate::stages::view::View;
use model::Timestamp;
use model::history::{EventKind, Severity};
use model::request::event;
use serde_json::Value;

/// When the step counts as hung: at its time limit, and after too long without progress if the agent reports progress.
pub(super) fn deadlines(view: &View, issued: &Issued) -> (Option<Timestamp>, Option<Timestamp>) {
    let (limit, stall) = view.settings.step_limits(&issued.step.label());
    let contact = &view.snapshot.contact;
    let at = issued.sent_to.at;
    let moved = contact.progress_at.unwrap_or(at).max(at);
    // The progress of a step is unknown until a heartbeat reports the step as running.
    let reported = agents::of(contact).is_running();
    (limit.map(|limit| at.after(limit)), stall.filter(|_| reported).map(|stall| moved.after(stall)))
}

/// Why the step counts as hung, if it does.
pub(super) fn reason(view: &View, issued: &Issued) -> Option<String> {
    let (limit, stall) = deadlines(view, issued);
    let at = issued.sent_to.at;
    if let Some(limit) = limit.filter(|limit| *limit <= view.snapshot.now) {
        return Some(format!("the step has taken longer than its limit of {} s", limit.since(at).as_secs()));
    }
    // Measured to the last heartbeat, not to now: a heartbeat that was lost, or that came while the controller was down,
    // would have reported progress.
    let contact = &view.snapshot.contact;
    let heard = contact.last_heartbeat_at.unwrap_or(at);
    if stall.is_some_and(|stall| stall <= heard) {
        let moved = contact.progress_at.unwrap_or(at).max(at);
        let seconds = heard.since(moved).as_secs();
        return Some(format!("the step hangs: no progress for {seconds} s, while the agent is heard"));
    }
    None
}

/// Stop a hung step where that is possible; then the run fails.
pub(super) fn stop_or_fail(view: &View, issued: &Issued, reason: String) -> Change {
    let can_stop = issued.step.step.abortable && agents::of(&view.snapshot.contact).can_cancel();
    if !can_stop {
        return fail::step_failed(view, &reason, Value::Null);
    }
    let mut change = view.with_run(|run| {
        run.attempts = 0;
        run.hung = Some(reason.clone());
    });
    change.events.push(event(EventKind::Step, Severity::Error, reason, view.snapshot.now));
    change
}
