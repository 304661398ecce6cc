//! A command that the agent has acknowledged: ask about it until it ends.

use super::issued::Issued;
use super::{hang, pace};
use crate::agents;
use crate::decision::{Action, Change, Decision};
use crate::stages::view::View;
use crate::stages::wait::{is_due, sleep_on, waiting};
use agent_protocol::command::{CHECKPOINT_MAX, CommandStatus};
use agent_protocol::progress::{DiskProgress, Progress};
use model::history::{EventKind, Severity};
use model::request::event;
use model::run::Cursor;

/// Ask at once if the agent has reported that the command ended, or may have ([`pace`]), else whenever a poll is due. After a
/// failed attempt the power state is read next.
pub(super) fn decide(view: &View, issued: &Issued) -> Decision {
    let (snapshot, now) = (view.snapshot, view.snapshot.now);
    let command_id = issued.command_id.to_owned();
    if view.run.attempts == 0 && pace::has_news(view, issued) {
        return Decision::Act(Action::AskCommand { command_id });
    }
    // A wake-up later than the next poll is the deadline of a wait for an agent that has come back since.
    let came_back = snapshot.node.next_wake_at.is_some_and(|at| at > now.after(view.settings.agent_poll()));
    if !came_back && !is_due(snapshot) {
        return sleep_on(&snapshot.node);
    }
    let stop = (view.run.abort || view.run.hung.is_some()) && issued.step.step.abortable;
    Decision::Act(match view.run.attempts % 2 {
        1 => Action::ReadPower,
        _ if stop => Action::CancelCommand { command_id },
        _ => Action::AskCommand { command_id },
    })
}

/// Nothing was learnt: try again after the pause, in the same wait.
pub(super) fn again(view: &View, error: Option<String>) -> Change {
    let (node, now) = (&view.snapshot.node, view.snapshot.now);
    let mut change = view.with_run(|run| run.attempts += 1);
    change.node.wait = match error {
        Some(text) => Some(waiting(node, &format!("the agent to answer ({text})"), None, now)),
        None => node.wait.clone(),
    };
    change.node.next_wake_at = Some(now.after(view.settings.agent_poll()));
    change
}

/// The agent runs the command.
pub(super) fn running(view: &View, status: CommandStatus) -> Change {
    let now = view.snapshot.now;
    let issued = Issued::of(view);
    if let Some(issued) = issued.as_ref().filter(|issued| issued.accepted && view.run.hung.is_none())
        && let Some(reason) = hang::reason(view, issued)
    {
        return hang::stop_or_fail(view, issued, reason);
    }
    // A hung step is given as many attempts to stop as any action that fails.
    let stopping = view.run.hung.is_some();
    let mut change = view.with_run(|run| {
        run.attempts = if stopping { run.attempts + 2 } else { 0 };
        let checkpoint = status.checkpoint.filter(|data| data.to_string().len() <= CHECKPOINT_MAX);
        if let Some(data) = checkpoint {
            run.keep_checkpoint(data);
        }
        if let Cursor::Issued { command_id, at, accepted, .. } = &mut run.cursor {
            // ironic-python-agent chooses its own ids.
            *command_id = status.id;
            // The step's time counts from when the agent had it, not from when it was stored.
            if !*accepted {
                *at = now;
            }
            *accepted = true;
        }
    });
    let label = issued.as_ref().map(|issued| issued.step.label()).unwrap_or_default();
    let mut wait = waiting(&view.snapshot.node, &format!("step {label} to end"), None, now);
    if let Some(issued) = &issued {
        let (limit, stall) = hang::deadlines(view, issued);
        let silence = now.after(view.silence_limit());
        wait.deadline = [limit, stall, Some(silence)].into_iter().flatten().min();
    }
    change.node.wait = Some(wait);
    change.node.last_error = stalled_disks(view);
    if let Some(text) = change.node.last_error.clone().filter(|_| view.snapshot.node.last_error.is_none()) {
        change.events.push(event(EventKind::Step, Severity::Error, format!("{label}: {text}"), now));
    }
    let pause = issued.as_ref().map_or(view.settings.agent_poll(), |issued| pace::pause(view, issued));
    change.node.next_wake_at = Some(now.after(pause));
    change
}

/// The disks whose progress stands still, as heartbeats report it. This is a warning; the step has limits of its own.
fn stalled_disks(view: &View) -> Option<String> {
    let progress = agents::of(&view.snapshot.contact).progress()?;
    let progress: Progress = serde_json::from_value(progress.clone()).ok()?;
    let stalled = |disk: &DiskProgress| {
        let serial = disk.serial.as_deref().unwrap_or("none");
        let share = format!("{} of {} bytes", disk.bytes_done, disk.bytes_total);
        disk.stalled_since.map(|_| format!("disk {} (serial {serial}) stands still at {share}", disk.device))
    };
    let stalled: Vec<String> = progress.disks.iter().filter_map(stalled).collect();
    (!stalled.is_empty()).then(|| stalled.join("; "))
}
