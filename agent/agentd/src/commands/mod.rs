//! The commands a controller can give, one file a group.
//!
//! A command runs blocking on a thread of its own; [`crate::agent::Agent`] sees to one at a time,
//! panics and bookkeeping.

mod anneal;
mod clean;
mod deploy;
mod flow;
mod image;
mod log;
mod poll;
mod rescue;
mod service;
mod standby;
mod system;
mod tar;

pub use log::system_logs;

use crate::agent::Agent;
use crate::evidence::{self, Ended};
use crate::registry::Ending;
use crate::steps::{self, StepTable};
use agent_protocol::command::{ANNEAL, Addition};
use hwm_sdk::{StepContext, StepKind};
use serde::Deserialize;
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
    /// What to say when the work panics; gets the parameters and the panic's message.
    pub panicked: fn(&Map<String, Value>, &str) -> Ending,
    /// How it compares with the command of that name of ironic-python-agent.
    pub likeness: Likeness,
}

/// How a command compares with ironic-python-agent's; `docs/compatibility-agent.md` is made of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// The same parameters, results and errors.
    Same,
    /// Served; this is different.
    Differs(&'static str),
    /// Taken, and always ends [`Status::Failed`](agent_protocol::command::Status) with this, having done nothing.
    Fails(&'static str),
    /// Answered 400 with this.
    Invalid(&'static str),
    /// ironic-python-agent has none of that name; this is what it does.
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
    /// The agent.
    pub agent: &'a Agent,
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
    /// It is known and makes no sense here ([`Likeness::Invalid`]).
    #[error("Invalid command: {0}")]
    Invalid(&'static str),
}

/// The one table of commands; `anneal.cancel` alone is not in it.
const GROUPS: [&[Command]; 11] = [
    clean::COMMANDS,
    deploy::COMMANDS,
    service::COMMANDS,
    log::COMMANDS,
    standby::COMMANDS,
    image::COMMANDS,
    rescue::COMMANDS,
    poll::COMMANDS,
    flow::COMMANDS,
    system::COMMANDS,
    anneal::COMMANDS,
];

const GET: Likeness = Likeness::Differs(
    "steps may have members of ours (`idempotent`, `destructive` and others); priorities are those of our own steps",
);
const EXECUTE: Likeness = Likeness::Differs(
    "arguments are checked against the step's schema before it runs; a failed step keeps its report in `command_result`",
);

/// All commands.
pub fn all() -> impl Iterator<Item = &'static Command> {
    GROUPS.iter().flat_map(|group| group.iter())
}

/// Find a command by `<extension>.<command>`.
pub fn find(name: &str) -> Result<&'static Command, UnknownCommand> {
    let (extension, command) = split(name)?;
    if let Some(found) = all().find(|candidate| candidate.name == name) {
        return match found.likeness {
            Likeness::Invalid(why) => Err(UnknownCommand::Invalid(why)),
            _ => Ok(found),
        };
    }
    if all().any(|candidate| candidate.name.split_once('.').is_some_and(|(group, _)| group == extension)) {
        return Err(UnknownCommand::Command(command.to_owned()));
    }
    Err(UnknownCommand::Extension(extension.to_owned()))
}

/// `<extension>` and `<command>` of a name.
pub fn split(name: &str) -> Result<(&str, &str), UnknownCommand> {
    name.split_once('.')
        .filter(|(extension, command)| !extension.is_empty() && !command.is_empty())
        .ok_or(UnknownCommand::Form)
}

impl Command {
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
}

/// A `TypeError`, the form of wrong parameters.
pub fn type_error(problem: String) -> Ending {
    Ending::failed("TypeError", "Wrong parameters", problem)
}

/// A command that is known and cannot be done, in the form of one that failed.
fn failed(why: &str) -> Ending {
    Ending::failed("CommandExecutionError", "Command execution failed", why)
}

fn get_steps(call: &Call, kind: StepKind) -> Ending {
    let inventory = call.agent.rediscover();
    Ending::done(Some(StepTable::collect(&call.agent.managers(), &inventory, kind).advertised()))
}

fn execute_step(call: &Call, kind: StepKind) -> Ending {
    let inventory = call.agent.inventory();
    let table = StepTable::collect(&call.agent.managers(), &inventory, kind);
    let version = call.params.get(steps::words(kind).version);
    let added = call.params.get(ANNEAL).map_or_else(|| Ok(Addition::default()), Addition::deserialize);
    let Ok(Addition { checkpoint }) = added else {
        return type_error(format!("execute_{}_step() got a wrong '{ANNEAL}'", steps::words(kind).adjective));
    };
    let (step, node) = (&call.params["step"], &call.params["node"]);
    let mut ending = table.execute(step, node, version, &call.context.resuming(checkpoint));
    let ended = Ended { kind, step, node, command_id: call.id, manager: table.manager_of(step) };
    evidence::attach(call.agent, &ended, &mut ending);
    ending
}

fn step_panicked(kind: StepKind, params: &Map<String, Value>, panic: &str) -> Ending {
    steps::panicked(kind, params.get("step").unwrap_or(&Value::Null), panic)
}

fn command_panicked(_: &Map<String, Value>, panic: &str) -> Ending {
    failed(&format!("panic: {panic}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_looked_up_with_the_texts_of_ipa() {
        assert_eq!(find("clean.get_clean_steps").map(Command::short_name), Ok("get_clean_steps"));
        let text = |name| find(name).map(Command::short_name).map_err(|error| error.to_string());
        assert_eq!(
            text("nosuch"),
            Err("Invalid command: Command name must be of the form <extension>.<name>".into())
        );
        assert_eq!(text("nosuch.cmd"), Err("Not found: Extension with id nosuch not found.".into()));
        assert_eq!(text("clean.nosuch"), Err("Invalid command: Unknown command: nosuch".into()));
    }

    #[test]
    fn parameters_are_checked_by_name() {
        let command = find("clean.execute_clean_step").expect("known");
        let check = |value: Value| command.check_params(value.as_object().expect("object"));
        assert_eq!(check(json!({"step": {}, "node": {}, "ports": []})), Ok(()));
        assert!(check(json!({"step": {}, "node": {}})).is_err_and(|text| text.contains("'ports'")));
        assert!(
            check(json!({"step": {}, "node": {}, "ports": [], "x": 1}))
                .is_err_and(|text| text.contains("'x'"))
        );
    }
}
