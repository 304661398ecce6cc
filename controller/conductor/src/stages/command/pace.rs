//! When an agent is asked about a running command.
//!
//! Our agent reports in a heartbeat that a command has ended. ironic-python-agent reports nothing in its heartbeats, but it
//! sends one when a command has ended, no sooner than 5 s after the one before. Such an agent is asked soon after the command
//! was given, then less and less often, and at each heartbeat.
//!
//! No time is stored for that: the pause is a share of the time that the command has run, so the time of the last question
//! follows from when the next one is due.

use super::issued::Issued;
use crate::agents;
use crate::stages::view::View;
use model::image::{WRITE_IMAGE, is_step};
use std::time::Duration;

/// The shortest pause between two questions.
const SHORTEST: Duration = Duration::from_millis(50);
/// The longest pause while an image is written: what a checkpoint has that was not asked for is written again after a power
/// cut.
const CHECKPOINTS: Duration = Duration::from_secs(2);
/// A pause lasts the time that the command had run before it, divided by this.
const SHARE: u32 = 4;

/// The pause after an answer that the command runs.
pub(super) fn pause(view: &View, issued: &Issued) -> Duration {
    let longest = view.settings.agent_poll();
    if agents::of(&view.snapshot.contact).reports_ends() {
        let writes_image = is_step(&issued.step.step, WRITE_IMAGE);
        return if writes_image { longest.min(CHECKPOINTS) } else { longest };
    }
    // An agent that has just acknowledged the command begins it now.
    let began = if issued.accepted { issued.sent_to.at } else { view.snapshot.now };
    share(view.snapshot.now.since(began) / SHARE, longest)
}

/// Whether the agent has reported that the command ended, or may have: a heartbeat came since it was asked.
pub(super) fn has_news(view: &View, issued: &Issued) -> bool {
    let agent = agents::of(&view.snapshot.contact);
    if agent.reports_ends() {
        return agent.has_ended(issued.command_id);
    }
    let heard = view.snapshot.contact.last_heartbeat_at;
    let Some((due, heard)) = view.snapshot.node.next_wake_at.zip(heard) else { return false };
    // At `due` the command has run for the time before the pause and for the pause.
    let pause = share(due.since(issued.sent_to.at) / (SHARE + 1), view.settings.agent_poll());
    heard.after(pause) > due
}

fn share(pause: Duration, longest: Duration) -> Duration {
    pause.max(SHORTEST).min(longest)
}
