//! Runs commands: one at a time, each on a thread of its own; a panic fails the command, never the agent.
//!
//! ```text
//!   submit ─▶ registry (known, busy, reused?) ─▶ start: a thread ─▶ finish ─▶ waiting answers, heartbeat
//!   cancel ─▶ recorded next to the running command
//! ```

use crate::commands::{self, Call, Command, Mode, UnknownCommand};
use crate::memory;
use crate::registry::{Cancel, Ending, OldEpoch, Submission};
use crate::state::{State, random_id};
use agent_protocol::command::{CommandStatus, Status};
use hwm_sdk::StepContext;
use serde_json::{Map, Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::{Notify, watch};

/// Cancels another command; accepted while that one runs. Anneal's.
const CANCEL: &str = "anneal.cancel";

/// Why a command was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The name.
    #[error(transparent)]
    Unknown(#[from] UnknownCommand),
    /// One at a time.
    #[error("Agent is busy: executing command {0}")]
    Busy(String),
    /// `anneal_command_id` belongs to another command.
    #[error("Invalid command: id {id} has been used for command {command_name}")]
    Reused {
        /// The id.
        id: String,
        /// Its command.
        command_name: String,
    },
    /// Another controller, or a later pass of this one, drives the node by now.
    #[error("412 Precondition Failed: {0}")]
    OldEpoch(#[from] OldEpoch),
}

/// The executor of an agent's commands.
pub struct Executor {
    state: Arc<State>,
    /// How many commands have ended.
    ended: watch::Sender<u64>,
    heartbeat_due: Notify,
}

impl Executor {
    /// An executor over this state.
    pub fn new(state: State) -> Arc<Self> {
        Arc::new(Self { state: Arc::new(state), ended: watch::Sender::new(0), heartbeat_due: Notify::new() })
    }

    /// The state of the agent.
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Resolves when an asynchronous command has ended since the last call.
    pub async fn heartbeat_due(&self) {
        self.heartbeat_due.notified().await;
    }

    /// Accept a command and start it. The returned status may still be running; `Mode` says whether the answer waits.
    ///
    /// # Errors
    /// The name is unknown, another command runs, the id belongs to another command, or the epoch is an old one.
    pub fn submit(
        self: &Arc<Self>,
        name: &str,
        params: Map<String, Value>,
        wanted_id: Option<&str>,
        epoch: Option<u64>,
    ) -> Result<(CommandStatus, Mode), SubmitError> {
        if name == CANCEL {
            self.state.registry().admit(epoch)?;
            return self.cancel(&params, wanted_id).map(|status| (status, Mode::Sync));
        }
        let (_, short_name) = commands::split(name)?;
        let mut registry = self.state.registry();
        registry.admit(epoch)?;
        // IPA's order: an agent that is busy answers so before it looks the name up.
        let command = match (commands::find(name), registry.running()) {
            (Ok(command), _) => command,
            (Err(_), Some(running)) => return Err(SubmitError::Busy(running.command_name)),
            (Err(unknown), None) => return Err(unknown.into()),
        };
        let (id, context) = match registry.submit(short_name, wanted_id, random_id()) {
            Submission::New { id, context } => (id, context),
            Submission::Known(status) => return Ok((*status, command.mode)),
            Submission::Busy { command_name } => return Err(SubmitError::Busy(command_name)),
            Submission::Reused { command_name } => {
                return Err(SubmitError::Reused {
                    id: wanted_id.unwrap_or_default().to_owned(),
                    command_name,
                });
            }
        };
        drop(registry);
        tracing::info!(command_id = %id, command = name, "command accepted");
        match command.check_params(&params) {
            Err(problem) => self.finish(&id, commands::type_error(problem)),
            Ok(()) => self.start(&id, command, params, context),
        }
        let status = self.state.command(&id).ok_or_else(|| SubmitError::Busy(short_name.to_owned()))?;
        Ok((status, command.mode))
    }

    fn start(
        self: &Arc<Self>,
        id: &str,
        command: &'static Command,
        params: Map<String, Value>,
        context: StepContext,
    ) {
        let executor = self.clone();
        let thread_id = id.to_owned();
        let body = move || {
            // The controller may be heard before all disks are there. No command may look at some of them, or miss a vendor's manager.
            executor.state.inventory();
            let call = Call {
                state: &executor.state,
                find: commands::find,
                id: &thread_id,
                params: &params,
                context: &context,
            };
            let ending = catch_unwind(AssertUnwindSafe(|| (command.run)(&call)))
                .unwrap_or_else(|panic| command.panicked(&params, &panic_text(&*panic)));
            executor.finish(&thread_id, ending);
            if command.mode == Mode::Async {
                executor.heartbeat_due.notify_one();
            }
        };
        if let Err(error) = std::thread::Builder::new().name("command".into()).spawn(body) {
            let details = format!("no thread for the command: {error}");
            self.finish(id, Ending::failed("CommandExecutionError", "Command execution failed", details));
        }
    }

    fn finish(&self, id: &str, ending: Ending) {
        // Logged before the end is published: a controller may cut the power right after it.
        let peak_memory_kib = memory::peak_kib();
        match &ending.error {
            None => tracing::info!(command_id = %id, peak_memory_kib, "command succeeded"),
            Some(error) => {
                let (kind, error) = (&error.kind, &error.details);
                tracing::warn!(command_id = %id, kind, error, peak_memory_kib, "command failed");
            }
        }
        self.state.registry().finish(id, ending);
        self.ended.send_modify(|count| *count += 1);
    }

    fn cancel(
        &self,
        params: &Map<String, Value>,
        wanted_id: Option<&str>,
    ) -> Result<CommandStatus, SubmitError> {
        let target = params.get("command_id").and_then(Value::as_str).filter(|_| params.len() == 1);
        let submission = self.state.registry().record("cancel", wanted_id, random_id(), |registry| {
            let Some(target) = target else {
                return commands::type_error("cancel() takes one argument: 'command_id', a string".into());
            };
            match registry.cancel(target) {
                Cancel::Unknown => Ending::failed(
                    "CommandNotFound",
                    "Nothing to cancel",
                    format!("Command Result with id {target} not found."),
                ),
                asked => {
                    Ending::done(Some(json!({ "command_id": target, "was_running": asked == Cancel::Asked })))
                }
            }
        });
        match submission {
            Submission::Known(status) => Ok(*status),
            Submission::Reused { command_name } => {
                Err(SubmitError::Reused { id: wanted_id.unwrap_or_default().to_owned(), command_name })
            }
            Submission::Busy { command_name } => Err(SubmitError::Busy(command_name)),
            Submission::New { id, .. } => Err(SubmitError::Reused { id, command_name: "cancel".into() }),
        }
    }

    /// One command, when it has ended.
    pub async fn ended(&self, id: &str) -> Option<CommandStatus> {
        let mut ended = self.ended.subscribe();
        loop {
            ended.mark_unchanged();
            let status = self.state.command(id)?;
            if status.command_status != Status::Running || ended.changed().await.is_err() {
                return Some(status);
            }
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "of unknown cause".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logging::LogRing;
    use crate::login::NoLogin;
    use agent_protocol::inventory::Inventory;
    use ramdisk_init::{Progress, Storage};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// The controller is called as soon as it can be. What it asks for then must not look at half of the disks.
    #[tokio::test]
    async fn a_command_waits_until_all_disks_are_there() {
        let (storage, looks) = (Storage::new(), Arc::new(AtomicUsize::new(0)));
        let counted = looks.clone();
        let discover = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Inventory::default()
        };
        let login = Box::new(NoLogin);
        let state = State::new(None, Vec::new(), Box::new(discover), LogRing::default(), login, true);
        let executor = Executor::new(state.searching(Some(storage.clone())));
        // One that does not look at the hardware by itself, which would wait, too.
        let name = "standby.get_partition_uuids";
        let (status, _) = executor.submit(name, Map::new(), None, None).expect("accepted");
        storage.reached(Progress::Found);
        let ended = executor.ended(&status.id);
        assert!(tokio::time::timeout(Duration::from_millis(200), ended).await.is_err(), "it did not wait");
        assert_eq!(looks.load(Ordering::SeqCst), 0, "it looked at what was there");
        storage.reached(Progress::Settled);
        let ended = executor.ended(&status.id).await.expect("known");
        assert_eq!(ended.command_status, Status::Succeeded, "{ended:?}");
        assert_eq!(looks.load(Ordering::SeqCst), 1);
    }
}
