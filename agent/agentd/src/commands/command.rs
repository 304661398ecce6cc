//! What a command is: its row in the table and one call of it.

use crate::registry::Ending;
use crate::state::State;
use crate::steps;
use hwm_sdk::{StepContext, StepKind};
use serde_json::{Map, Value};

/// A command of the table.
pub struct Command {
    /// `<extension>.<command>`
    pub name: &'static str,
    /// Whether POST answers at once or only when the command has ended.
    pub mode: Mode,
    /// Parameters that must be given.
    pub required: &'static [&'static str],
    /// Parameters that may be given.
    pub optional: &'static [&'static str],
    /// The work.
    pub run: fn(&Call) -> Ending,
    /// The kind of the step that it executes, if it executes one.
    pub executes: Option<StepKind>,
    /// How it compares with the command of that name of ironic-python-agent.
    pub compatibility: IpaCompatibility,
}

/// How a command compares with ironic-python-agent's; `docs/compatibility-agent.md` is generated from these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpaCompatibility {
    /// The same parameters, results and errors.
    Same,
    /// Served; this is different.
    Differs(&'static str),
    /// Accepted; always ends [`Status::Failed`](agent_protocol::command::Status) with this text and changes nothing.
    Fails(&'static str),
    /// Rejected with 400 and this text.
    Invalid(&'static str),
    /// ironic-python-agent has no command of that name; this is what it does.
    Ours(&'static str),
}

/// Whether POST waits for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// POST always waits.
    Sync,
    /// POST answers at once unless `wait=true`; the end forces a heartbeat.
    Async,
}

/// One run of a command.
pub struct Call<'a> {
    /// The agent's state.
    pub state: &'a State,
    /// Finds other commands, for a flow.
    pub find: fn(&str) -> Result<&'static Command, UnknownCommand>,
    /// Its id.
    pub id: &'a str,
    /// Its parameters, names checked.
    pub params: &'a Map<String, Value>,
    /// Progress and cancellation.
    pub context: &'a StepContext,
}

/// Why a name is not a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownCommand {
    /// No dot.
    #[error("Invalid command: Command name must be of the form <extension>.<name>")]
    Form,
    /// No command of that extension.
    #[error("Not found: Extension with id {0} not found.")]
    Extension(String),
    /// The extension has no such command.
    #[error("Invalid command: Unknown command: {0}")]
    Command(String),
    /// The command is known and never valid here ([`IpaCompatibility::Invalid`]).
    #[error("Invalid command: {0}")]
    Invalid(&'static str),
}

impl Command {
    /// A command without parameters.
    pub(super) const fn new(
        name: &'static str,
        mode: Mode,
        compatibility: IpaCompatibility,
        run: fn(&Call) -> Ending,
    ) -> Self {
        Self { name, mode, required: &[], optional: &[], run, executes: None, compatibility }
    }

    /// This command with parameters.
    pub(super) const fn with(
        self,
        required: &'static [&'static str],
        optional: &'static [&'static str],
    ) -> Self {
        Self { required, optional, ..self }
    }

    /// The name without its extension, as it stands in a command's status.
    pub fn short_name(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, command)| command)
    }

    /// Python's complaint about wrong parameters: Ironic looks for an error of type `TypeError`.
    pub fn check_params(&self, params: &Map<String, Value>) -> Result<(), String> {
        let function = self.short_name();
        for name in params.keys() {
            if !self.required.contains(&name.as_str()) && !self.optional.contains(&name.as_str()) {
                return Err(format!("{function}() got an unexpected keyword argument '{name}'"));
            }
        }
        for name in self.required {
            if !params.contains_key(*name) {
                return Err(format!("{function}() missing required argument: '{name}'"));
            }
        }
        Ok(())
    }

    /// The ending of a run with these parameters that panicked with this message.
    pub fn panicked(&self, params: &Map<String, Value>, panic: &str) -> Ending {
        match self.executes {
            Some(kind) => steps::panicked(kind, params.get("step").unwrap_or(&Value::Null), panic),
            None => failed(&format!("panic: {panic}")),
        }
    }
}

/// A `TypeError`, the form of wrong parameters.
pub fn type_error(problem: String) -> Ending {
    Ending::failed("TypeError", "Wrong parameters", problem)
}

/// The ending of a command that is known and cannot be run.
pub(super) fn failed(why: &str) -> Ending {
    Ending::failed("CommandExecutionError", "Command execution failed", why)
}
