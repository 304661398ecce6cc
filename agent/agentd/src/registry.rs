//! Commands by id: what was asked, what runs, how it ended.
//!
//! ```text
//!   submit ──▶ New ──run elsewhere──▶ finish
//!     ├──────▶ Known    the same id again: the same command, never run twice
//!     ├──────▶ Reused   the same id for another command
//!     └──────▶ Busy     one command at a time
//! ```
//!
//! Pure: no thread, no clock, no randomness. Invariants (property-tested): at most one command
//! runs; an id never runs twice; an ended command never changes; the list is in order of arrival.

use agent_protocol::command::{CommandError, CommandList, CommandStatus, Status};
use agent_protocol::heartbeat::Running;
use agent_protocol::progress::Progress;
use hwm_sdk::StepContext;
use serde_json::Value;
use std::collections::HashMap;

/// How many ended commands a heartbeat names ([`agent_protocol::heartbeat::AgentState::ended`]).
const ENDED_IN_HEARTBEAT: usize = 16;

/// All commands since the process began.
#[derive(Default)]
pub struct Registry {
    entries: Vec<Entry>,
    by_id: HashMap<String, usize>,
    running: Option<usize>,
    ended: Vec<usize>,
    newest_epoch: u64,
}

/// A command was sent under a lease that has been taken over since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the command was sent under the lease with epoch {sent}, and the newest is that with epoch {newest}")]
pub struct OldEpoch {
    /// Epoch of the command.
    pub sent: u64,
    /// The newest that a command was sent with.
    pub newest: u64,
}

struct Entry {
    status: CommandStatus,
    context: StepContext,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// Never [`Status::Running`].
    pub status: Status,
    /// Set unless it succeeded.
    pub error: Option<CommandError>,
    /// Result; a failed command may keep evidence here.
    pub result: Option<Value>,
}

impl Ending {
    /// Ended well.
    pub fn done(result: Option<Value>) -> Self {
        Self { status: Status::Succeeded, error: None, result }
    }

    /// Failed.
    pub fn failed(kind: &str, message: &str, details: impl Into<String>) -> Self {
        let error =
            CommandError { kind: kind.into(), code: 500, message: message.into(), details: details.into() };
        Self { status: Status::Failed, error: Some(error), result: None }
    }
}

/// Answer to [`Registry::submit`].
#[derive(Debug)]
pub enum Submission {
    /// Run it, then call [`Registry::finish`].
    New {
        /// Its id.
        id: String,
        /// Its progress and cancellation.
        context: StepContext,
    },
    /// The id is known: this is the command.
    Known(Box<CommandStatus>),
    /// The id was used for another command.
    Reused {
        /// Name of that one.
        command_name: String,
    },
    /// Another command runs.
    Busy {
        /// Its name.
        command_name: String,
    },
}

/// Answer to [`Registry::cancel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    /// No such command.
    Unknown,
    /// It had ended already.
    Ended,
    /// It has been asked to stop.
    Asked,
}

impl Registry {
    /// Admit a command that was sent under the lease with this epoch, if it is not older than that of an earlier command.
    /// A controller that has no leases (Ironic) sends no epoch.
    ///
    /// # Errors
    /// It is older.
    pub fn admit(&mut self, epoch: Option<u64>) -> Result<(), OldEpoch> {
        match epoch {
            Some(sent) if sent < self.newest_epoch => Err(OldEpoch { sent, newest: self.newest_epoch }),
            Some(sent) => {
                self.newest_epoch = sent;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Take a command named `command_name` (without extension) under the id the controller wants,
    /// or under `fresh_id` when it has no wish.
    pub fn submit(&mut self, command_name: &str, wanted: Option<&str>, fresh_id: String) -> Submission {
        if let Some(known) = wanted.and_then(|id| self.known(command_name, id)) {
            return known;
        }
        if let Some(running) = self.running {
            return Submission::Busy { command_name: self.entries[running].status.command_name.clone() };
        }
        let id = wanted.map_or(fresh_id, str::to_owned);
        let context = self.push(command_name, &id);
        self.running = Some(self.entries.len() - 1);
        Submission::New { id, context }
    }

    /// Record a command that has already ended, next to the running one (cancelling is such a command).
    pub fn record(
        &mut self,
        command_name: &str,
        wanted: Option<&str>,
        fresh_id: String,
        ending: impl FnOnce(&mut Self) -> Ending,
    ) -> Submission {
        if let Some(known) = wanted.and_then(|id| self.known(command_name, id)) {
            return known;
        }
        let id = wanted.map_or(fresh_id, str::to_owned);
        let ending = ending(self);
        self.push(command_name, &id);
        let index = self.entries.len() - 1;
        self.end(index, ending);
        Submission::Known(Box::new(self.entries[index].status.clone()))
    }

    fn known(&self, command_name: &str, id: &str) -> Option<Submission> {
        let status = self.status(id)?;
        Some(if status.command_name == command_name {
            Submission::Known(Box::new(status))
        } else {
            Submission::Reused { command_name: status.command_name }
        })
    }

    fn push(&mut self, command_name: &str, id: &str) -> StepContext {
        let context = StepContext::new();
        let status = CommandStatus {
            id: id.to_owned(),
            command_name: command_name.to_owned(),
            command_status: Status::Running,
            command_error: None,
            command_result: None,
            progress: None,
            checkpoint: None,
        };
        self.by_id.insert(id.to_owned(), self.entries.len());
        self.entries.push(Entry { status, context: context.clone() });
        context
    }

    fn end(&mut self, index: usize, ending: Ending) {
        let status = &mut self.entries[index].status;
        status.command_status = ending.status;
        status.command_error = ending.error;
        status.command_result = ending.result;
        self.ended.push(index);
    }

    /// The running command `id` has ended. False (and no change) when it is not the running one.
    pub fn finish(&mut self, id: &str, ending: Ending) -> bool {
        match self.running {
            Some(index) if self.entries[index].status.id == id => {
                self.running = None;
                self.end(index, ending);
                true
            }
            _ => false,
        }
    }

    /// One command as it stands.
    pub fn status(&self, id: &str) -> Option<CommandStatus> {
        self.by_id.get(id).map(|&index| self.entries[index].snapshot())
    }

    /// All commands, oldest first.
    pub fn list(&self) -> CommandList {
        CommandList { commands: self.entries.iter().map(Entry::snapshot).collect() }
    }

    /// The running command, in the form of a heartbeat.
    pub fn running(&self) -> Option<Running> {
        let status = self.entries[self.running?].snapshot();
        Some(Running { id: status.id, command_name: status.command_name, progress: status.progress })
    }

    /// Ids of the last commands that ended, newest last.
    pub fn ended(&self) -> Vec<String> {
        let from = self.ended.len().saturating_sub(ENDED_IN_HEARTBEAT);
        self.ended[from..].iter().map(|&index| self.entries[index].status.id.clone()).collect()
    }

    /// Ask a command to stop.
    pub fn cancel(&mut self, id: &str) -> Cancel {
        match self.by_id.get(id) {
            None => Cancel::Unknown,
            Some(&index) if self.running == Some(index) => {
                self.entries[index].context.cancel();
                Cancel::Asked
            }
            Some(_) => Cancel::Ended,
        }
    }
}

impl Entry {
    fn snapshot(&self) -> CommandStatus {
        let mut status = self.status.clone();
        if status.command_status == Status::Running {
            status.progress =
                Some(self.context.progress()).filter(|progress| *progress != Progress::default());
            status.checkpoint = self.context.saved();
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[derive(Debug, Clone)]
    enum Act {
        Submit { name: usize, id: Option<usize> },
        Finish { id: usize },
        Cancel { id: usize },
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let one = prop_oneof![
            (0..2usize, proptest::option::of(0..6usize)).prop_map(|(name, id)| Act::Submit { name, id }),
            (0..6usize).prop_map(|id| Act::Finish { id }),
            (0..6usize).prop_map(|id| Act::Cancel { id }),
        ];
        proptest::collection::vec(one, 0..60)
    }

    proptest! {
        /// Whatever is asked in whatever order: one at a time, no id twice, the ended never change.
        #[test]
        fn invariants_hold(acts in acts()) {
            let mut registry = Registry::default();
            let mut started = HashSet::new();
            let mut frozen: Vec<CommandStatus> = Vec::new();
            for (turn, act) in acts.into_iter().enumerate() {
                let was_running = registry.running().map(|running| running.id);
                match act {
                    Act::Submit { name, id } => {
                        let name = ["execute_clean_step", "get_clean_steps"][name];
                        let id = id.map(|id| format!("c{id}"));
                        match registry.submit(name, id.as_deref(), format!("fresh{turn}")) {
                            Submission::New { id, .. } => {
                                prop_assert!(was_running.is_none(), "started next to a running command");
                                prop_assert!(started.insert(id.clone()), "{} ran twice", id);
                            }
                            Submission::Known(status) => {
                                prop_assert_eq!(Some(status.id.clone()), id);
                                prop_assert_eq!(status.command_name, name);
                            }
                            Submission::Reused { command_name } => prop_assert_ne!(command_name, name),
                            Submission::Busy { .. } => prop_assert!(was_running.is_some()),
                        }
                    }
                    Act::Finish { id } => {
                        let id = format!("c{id}");
                        let done = registry.finish(&id, Ending::done(Some(turn.into())));
                        prop_assert_eq!(done, was_running == Some(id.clone()));
                        if done {
                            frozen.push(registry.status(&id).expect("finished command is listed"));
                            prop_assert_eq!(registry.ended().pop(), Some(id));
                        }
                    }
                    Act::Cancel { id } => {
                        let id = format!("c{id}");
                        let expected = match (&was_running, registry.status(&id)) {
                            (Some(running), Some(_)) if *running == id => Cancel::Asked,
                            (_, Some(_)) => Cancel::Ended,
                            (_, None) => Cancel::Unknown,
                        };
                        prop_assert_eq!(registry.cancel(&id), expected);
                    }
                }
                let list = registry.list().commands;
                prop_assert_eq!(list.len(), started.len());
                let running = list.iter().filter(|c| c.command_status == Status::Running).count();
                prop_assert!(running <= 1);
                for ended in &frozen {
                    prop_assert_eq!(registry.status(&ended.id), Some(ended.clone()));
                }
            }
        }
    }

    #[test]
    fn cancel_reaches_the_context_and_is_recorded_next_to_the_running_command() {
        let mut registry = Registry::default();
        let Submission::New { id, context } = registry.submit("execute_clean_step", Some("a"), "x".into())
        else {
            panic!("first command is new");
        };
        let answer = registry.record("cancel", None, "b".into(), |registry| {
            assert_eq!(registry.cancel(&id), Cancel::Asked);
            Ending::done(None)
        });
        assert!(matches!(answer, Submission::Known(status) if status.command_status == Status::Succeeded));
        assert!(context.is_cancelled());
        assert_eq!(registry.running().map(|running| running.id), Some(id));
        assert_eq!(registry.ended(), ["b"]);
    }

    #[test]
    fn a_command_of_an_older_lease_is_not_admitted() {
        let mut registry = Registry::default();
        for (sent, newest) in
            [(None, None), (Some(5), None), (None, None), (Some(4), Some(5)), (Some(5), None)]
        {
            let expected = newest.map_or(Ok(()), |newest| Err(OldEpoch { sent: 4, newest }));
            assert_eq!(registry.admit(sent), expected, "{sent:?}");
        }
        assert_eq!(registry.admit(Some(6)), Ok(()));
        assert_eq!(registry.admit(Some(5)), Err(OldEpoch { sent: 5, newest: 6 }), "the newest counts");
    }

    /// A controller learns from a heartbeat that its command has ended, however many ended before it.
    #[test]
    fn a_heartbeat_names_the_commands_that_ended_last() {
        let mut registry = Registry::default();
        for number in 0..20 {
            let id = format!("c{number}");
            registry.submit("execute_clean_step", Some(&id), "unused".into());
            assert!(registry.finish(&id, Ending::done(None)));
        }
        let expected: Vec<_> = (20 - ENDED_IN_HEARTBEAT..20).map(|number| format!("c{number}")).collect();
        assert_eq!(registry.ended(), expected);
    }

    #[test]
    fn progress_is_shown_only_while_running() {
        use agent_protocol::progress::{DiskProgress, Phase};
        let mut registry = Registry::default();
        let Submission::New { id, context } = registry.submit("execute_clean_step", None, "x".into()) else {
            panic!("first command is new");
        };
        assert_eq!(registry.status(&id).and_then(|status| status.progress), None);
        let half = Progress { percent: Some(50), ..Progress::default() };
        context.report(half.clone());
        assert_eq!(registry.status(&id).and_then(|status| status.progress), Some(half), "without a disk");
        let disk = DiskProgress {
            device: "/dev/sda".into(),
            serial: None,
            phase: Phase::Erasing,
            method: None,
            bytes_done: 1,
            bytes_total: 2,
            rate: 1,
            eta: None,
            stalled_since: None,
        };
        context.report(Progress { disks: vec![disk], ..Progress::default() });
        assert!(registry.status(&id).and_then(|status| status.progress).is_some());
        assert!(registry.finish(&id, Ending::done(None)));
        assert_eq!(registry.status(&id).and_then(|status| status.progress), None);
    }
}
