//! Checks `last_error` of a failed run against what really happened.

use crate::effects::{BMC_REFUSES, BMC_SILENT, STEP_FAILED, TASK_FAILED, UNREACHABLE};
use crate::properties::Move;
use crate::scenario::{SILENCE, STEP_LIMIT, TICK};
use crate::world::{Applying, Lack, Stand, State, World};
use agent_protocol::command::Status;
use conductor::decision::{Action, Outcome};
use model::agent::AgentKind;
use model::{Cursor, PowerState, Timestamp};

/// What is known of the cause when a run fails.
struct Cause<'a> {
    now: &'a Move<'a>,
    /// The outcome that was applied, if it was one.
    outcome: Option<&'a Outcome>,
}

/// A part of `last_error`, and when it is true.
type Reason = (&'static str, fn(&Cause) -> bool);

const REASONS: &[Reason] = &[
    ("By request", |cause| cause.now.before.story.abort && !cause.failed_by_itself()),
    ("the node lost power", |cause| cause.outcome == Some(&Outcome::Power(PowerState::Off))),
    ("the node went off before", |cause| cause.outcome == Some(&Outcome::Power(PowerState::Off))),
    ("has not been heard for", |cause| cause.is_silent()),
    ("its boot script was fetched again", |cause| {
        cause.now.before.stored.contact.rival.as_ref().is_some_and(|rival| rival.fetched)
    }),
    ("the node rebooted", |cause| cause.is_another_boot() || cause.is_another_holder()),
    ("the agent was restarted", |cause| {
        cause.is_another_process() || cause.is_another_holder() || cause.forgot()
    }),
    ("another asks for its token", |cause| cause.now.before.stored.contact.rival.is_some()),
    ("sent no heartbeat, and another asks", |cause| cause.now.before.stored.contact.rival.is_some()),
    ("no agent came back", |cause| cause.is_unheard()),
    ("no heartbeat of an agent within", |cause| cause.is_unheard()),
    ("the agent is heard, but", |cause| cause.issued_ago() >= STEP_LIMIT),
    ("longer than its limit", |cause| cause.issued_ago() >= STEP_LIMIT && !cause.has_ended()),
    ("the step hangs", |cause| cause.now.before.story.hung && !cause.has_ended()),
    ("kept changing", |cause| cause.now.before.story.flips > cause.now.scenario.settings.max_replans),
    ("controller was interrupted", |cause| cause.now.before.story.died_in_step),
    ("of disk /dev/sda", |cause| matches!(cause.status(), Some(Status::Succeeded))),
    ("has not signed this report", |cause| cause.is_unproven(Lack::Signature)),
    ("is missing: the report of step", |cause| cause.is_unproven(Lack::Disk)),
    ("without a report of the disks", |cause| cause.is_unproven(Lack::Report)),
    (STEP_FAILED, |cause| cause.failed_by_itself()),
    (TASK_FAILED, |cause| cause.was_reported(TASK_FAILED)),
    (UNREACHABLE, |cause| cause.was_reported(UNREACHABLE) || cause.is_stored(UNREACHABLE)),
    (BMC_SILENT, |cause| cause.was_reported(BMC_SILENT)),
    (BMC_REFUSES, |cause| cause.was_reported(BMC_REFUSES)),
    ("Agent is busy", |cause| matches!(cause.outcome, Some(Outcome::Busy(_)))),
    ("the BMC accepted", |cause| matches!(cause.outcome, Some(Outcome::Power(_)))),
    ("during the step wait", |_| true),
    ("no hello of its instance came", |cause| !cause.has_said_hello()),
];

/// "... in a -fail state with the true reason". Why a step counts as hung is judged when that is stored, before the
/// step is requested to stop.
pub fn a_failure_states_its_true_reason(now: &Move) -> Result<(), String> {
    let hung = |world: &World| world.run().and_then(|run| run.hung.clone());
    let (hung_before, hung_after) = (hung(now.before), hung(&now.next.world));
    if let (None, Some(text)) = (&hung_before, &hung_after) {
        return judge(now, text);
    }
    if !now.fails() {
        return Ok(());
    }
    match now.next.world.node().last_error.as_deref() {
        None => Err("there is no last_error".to_owned()),
        Some(text) if text.contains("internal:") => Err(format!("a defect shows itself: {text}")),
        Some(text) => match hung_before.map(|hung| text.replace(&hung, "")) {
            Some(rest) if rest != text && !REASONS.iter().any(|(part, _)| rest.contains(part)) => Ok(()),
            Some(rest) => judge(now, &rest),
            None => judge(now, text),
        },
    }
}

fn judge(now: &Move, text: &str) -> Result<(), String> {
    let outcome = match &now.before.conductor {
        Stand::Done(applying) => Some(&applying.outcome),
        Stand::Storing(storing) => storing.applying.as_ref().map(|Applying { outcome, .. }| outcome),
        _ => None,
    };
    let cause = Cause { now, outcome };
    let mut stated = REASONS.iter().filter(|(part, _)| text.contains(part)).peekable();
    if stated.peek().is_none() {
        return Err(format!("an unknown reason: {text}"));
    }
    match stated.find(|(_, is_true)| !is_true(&cause)) {
        Some((part, _)) => Err(format!("{part:?} is not why: {text}\n    the outcome was {outcome:?}")),
        None if cause.failed_by_itself() && !text.contains(STEP_FAILED) => {
            Err(format!("the step failed by itself, and the error does not say so: {text}"))
        }
        None => Ok(()),
    }
}

impl Cause<'_> {
    fn has_said_hello(&self) -> bool {
        let hello = self.now.before.run().and_then(|run| run.hello.as_ref());
        hello.is_some_and(|hello| hello.heard_at.is_some())
    }

    fn status(&self) -> Option<Status> {
        match self.outcome {
            Some(Outcome::Command(status)) => Some(status.command_status),
            _ => None,
        }
    }

    /// The agent has just reported that the step failed for a reason other than a cancellation.
    fn failed_by_itself(&self) -> bool {
        match self.outcome {
            Some(Outcome::Command(status)) => {
                status.command_status == Status::Failed
                    && status.command_error.as_ref().is_some_and(|error| error.kind != "Cancelled")
            }
            _ => false,
        }
    }

    /// The agent has reported that the step has ended.
    fn has_ended(&self) -> bool {
        let by_outcome = matches!(self.status(), Some(status) if status != Status::Running)
            && !self.outcome.is_some_and(|outcome| {
                matches!(outcome, Outcome::Command(status)
                if status.command_error.as_ref().is_some_and(|error| error.kind == "Cancelled"))
            });
        let by_task = matches!(self.outcome, Some(Outcome::StepDone(_)));
        let state = self.now.before.stored.contact.anneal();
        let by_beat = self.outcome.is_none()
            && self
                .command_id()
                .is_some_and(|id| state.is_some_and(|state| state.ended.iter().any(|ended| ended == id)));
        // The error also names the step's own failure.
        (by_outcome && !self.failed_by_itself()) || by_task || by_beat
    }

    /// The command has ended as a success without this proof.
    fn is_unproven(&self, lack: Lack) -> bool {
        let Some(Outcome::Command(status)) = self.outcome else { return false };
        let commands = self.now.before.agent().map(|agent| agent.commands.as_slice()).unwrap_or_default();
        // An agent that was restarted since has no memory of it.
        commands.iter().all(|command| command.id != status.id || command.state == State::Unproven(lack))
    }

    fn cursor(&self) -> Option<&Cursor> {
        self.now.before.run().map(|run| &run.cursor)
    }

    fn command_id(&self) -> Option<&str> {
        match self.cursor()? {
            Cursor::Issued { command_id, .. } | Cursor::OutOfBand { command_id, .. } => Some(command_id),
            _ => None,
        }
    }

    fn issued_at(&self) -> Option<Timestamp> {
        match self.cursor()? {
            Cursor::Issued { at, .. } | Cursor::OutOfBand { at, .. } => Some(*at),
            _ => None,
        }
    }

    fn ago(&self, at: Timestamp) -> u64 {
        self.now.before.now().since(at).as_secs() / TICK.as_secs()
    }

    fn issued_ago(&self) -> u64 {
        self.issued_at().map_or(0, |at| self.ago(at))
    }

    /// No heartbeat for so long, and no answer, as the witness knows.
    fn is_silent(&self) -> bool {
        let issued = self.issued_at().map_or(0, |at| self.ago(at));
        let story = &self.now.before.story;
        self.ago(story.heard_at).min(issued) >= SILENCE && !story.answers
    }

    fn is_unheard(&self) -> bool {
        self.now.before.stored.contact.callback_url.is_none()
    }

    /// The command was written down for another boot than the one that is heard.
    fn is_another_boot(&self) -> bool {
        let heard = self.now.before.stored.contact.anneal().map(|state| &state.boot_id);
        matches!(self.cursor(), Some(Cursor::Issued { boot_id: Some(boot_id), .. }) if heard != Some(boot_id))
    }

    /// The agent that is heard is another process of the boot that the command was written down for.
    fn is_another_process(&self) -> bool {
        let heard = self.now.before.stored.contact.anneal();
        matches!(self.cursor(), Some(Cursor::Issued { boot_id, process_id: Some(process_id), .. })
        if heard.is_some_and(|state| {
            boot_id.as_ref() == Some(&state.boot_id) && *process_id != state.process_id
        }))
    }

    /// An ironic-python-agent reports neither boot nor process: the token was given out again since the command.
    fn is_another_holder(&self) -> bool {
        let contact = &self.now.before.stored.contact;
        contact.agent == Some(AgentKind::Ipa) && contact.token_at > self.issued_at()
    }

    /// The agent had accepted the command, and says that it does not know it.
    fn forgot(&self) -> bool {
        self.outcome == Some(&Outcome::NoSuchCommand)
            && matches!(self.cursor(), Some(Cursor::Issued { accepted: true, .. }))
    }

    /// The agent did not answer when it was asked for its steps, and the power state was read before the run failed.
    fn is_stored(&self, text: &str) -> bool {
        self.cursor() == Some(&Cursor::LearnSteps)
            && matches!(
                self.outcome,
                Some(Outcome::Power(PowerState::On) | Outcome::PowerUnknown | Outcome::Failed(_))
            )
            && self.now.before.node().last_error.as_deref() == Some(text)
    }

    fn was_reported(&self, text: &str) -> bool {
        match (self.outcome, &self.now.before.conductor) {
            (Some(Outcome::Failed(error)), _) => error.text == text,
            (_, Stand::Idle) => self
                .now
                .next
                .action
                .as_ref()
                .is_some_and(|action| matches!(action, Action::ReadPower | Action::ReadState)),
            _ => false,
        }
    }
}
