//! The command that is stored in the run's cursor, with its step.

use crate::agents::SentTo;
use crate::stages::view::View;
use model::PlannedStep;
use model::run::Cursor;

pub(super) struct Issued<'a> {
    pub command_id: &'a str,
    pub sent_to: SentTo<'a>,
    /// The agent has acknowledged it, or has reported it as running.
    pub accepted: bool,
    pub step: &'a PlannedStep,
}

impl<'a> Issued<'a> {
    /// The current command; `None` if the cursor holds no command or the plan has no step for it.
    pub fn of(view: &View<'a>) -> Option<Self> {
        let Cursor::Issued { command_id, at, boot_id, process_id, accepted } = &view.run.cursor else {
            return None;
        };
        Some(Self {
            command_id,
            sent_to: SentTo { at: *at, boot_id: boot_id.as_deref(), process_id: process_id.as_deref() },
            accepted: *accepted,
            step: view.run.current()?,
        })
    }
}
