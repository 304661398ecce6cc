//! `flow.start_flow`: commands one after the other, so that the caller need not wait for each.
//!
//! `flow` is a list of objects, each with commands by name: `[{"clean.execute_clean_step": {"step": …}}, …]`. All are
//! looked at before the first runs; the first that fails ends the flow.

use super::command::{Call, Command, IpaCompatibility, Mode, UnknownCommand, failed, type_error};
use crate::registry::Ending;
use agent_protocol::command::Status;
use serde_json::{Map, Value, json};

const NAME: &str = "flow.start_flow";

const DIFFERS: IpaCompatibility = IpaCompatibility::Differs(
    "every command and its parameters are checked before the first runs; the result of each is kept; no flow in a flow",
);

pub(super) const COMMANDS: &[Command] = &[Command::new(NAME, Mode::Async, DIFFERS, |call| {
    tasks(&call.params["flow"], call.find).map_or_else(type_error, |tasks| run(call, &tasks))
})
.with(&["flow"], &[])];

type Find = fn(&str) -> Result<&'static Command, UnknownCommand>;
type Task<'a> = (&'static Command, &'a Map<String, Value>);

/// The commands of a flow, all of them known and with parameters that fit.
fn tasks(flow: &Value, find: Find) -> Result<Vec<Task<'_>>, String> {
    let shape = || "start_flow() takes 'flow', a list of objects of commands and their parameters".to_owned();
    let mut tasks = Vec::new();
    for task in flow.as_array().ok_or_else(shape)? {
        for (name, params) in task.as_object().ok_or_else(shape)? {
            let command = find(name).map_err(|error| error.to_string())?;
            let params = params.as_object().ok_or_else(shape)?;
            command.check_params(params)?;
            if command.name == NAME {
                return Err("start_flow() takes no flow in a flow".to_owned());
            }
            tasks.push((command, params));
        }
    }
    Ok(tasks)
}

fn run(call: &Call, tasks: &[Task]) -> Ending {
    let mut results = Vec::new();
    for (command, params) in tasks {
        tracing::info!(command_id = call.id, command = command.name, "next of the flow");
        let ending = (command.run)(&Call { params, ..*call });
        results.push(json!({ "command_name": command.short_name(), "command_result": ending.result }));
        if ending.status != Status::Succeeded || call.context.is_cancelled() {
            let details =
                ending.error.map_or_else(|| "the flow is cancelled".to_owned(), |error| error.details);
            let failure = failed(&format!("{} was failed: {details}", command.name));
            return Ending { result: Some(json!({ "flow": results })), ..failure };
        }
    }
    Ending::done(Some(json!({ "flow": results })))
}
