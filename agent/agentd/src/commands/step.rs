//! `clean.*`, `deploy.*`, `service.*`: list the steps of a kind, and execute one.

use super::command::{Call, Command, IpaCompatibility, Mode, type_error};
use crate::evidence::{self, Ended};
use crate::registry::Ending;
use crate::steps::{self, StepTable};
use agent_protocol::command::{ANNEAL, Addition};
use hwm_sdk::StepKind::{self, Clean, Deploy, Service};
use serde::Deserialize;

pub(super) const COMMANDS: &[Command] = &[
    get("clean.get_clean_steps", |call| get_steps(call, Clean)),
    execute("clean.execute_clean_step", Clean, &["clean_version", ANNEAL], |call| execute_step(call, Clean)),
    get("deploy.get_deploy_steps", |call| get_steps(call, Deploy)),
    execute("deploy.execute_deploy_step", Deploy, &["deploy_version", ANNEAL], |call| {
        execute_step(call, Deploy)
    }),
    get("service.get_service_steps", |call| get_steps(call, Service)),
    execute("service.execute_service_step", Service, &["service_version", ANNEAL], |call| {
        execute_step(call, Service)
    }),
];

const fn get(name: &'static str, run: fn(&Call) -> Ending) -> Command {
    let differs = IpaCompatibility::Differs(
        "steps may have members of ours (`idempotent`, `destructive` and others); priorities are those of our own steps",
    );
    Command::new(name, Mode::Sync, differs, run).with(&["node", "ports"], &[])
}

const fn execute(
    name: &'static str,
    kind: StepKind,
    optional: &'static [&'static str],
    run: fn(&Call) -> Ending,
) -> Command {
    let differs = IpaCompatibility::Differs(
        "arguments are checked against the step's schema before it runs; a failed step keeps its report in `command_result`",
    );
    let command = Command::new(name, Mode::Async, differs, run).with(&["step", "node", "ports"], optional);
    Command { executes: Some(kind), ..command }
}

fn get_steps(call: &Call, kind: StepKind) -> Ending {
    let inventory = call.state.rediscover();
    Ending::done(Some(StepTable::collect(&call.state.managers(), &inventory, kind).advertised()))
}

fn execute_step(call: &Call, kind: StepKind) -> Ending {
    let inventory = call.state.inventory();
    let table = StepTable::collect(&call.state.managers(), &inventory, kind);
    let version = call.params.get(steps::words(kind).version);
    let added = call.params.get(ANNEAL).map_or_else(|| Ok(Addition::default()), Addition::deserialize);
    let Ok(Addition { checkpoint, .. }) = added else {
        return type_error(format!("execute_{}_step() got a wrong '{ANNEAL}'", steps::words(kind).adjective));
    };
    let (step, node) = (&call.params["step"], &call.params["node"]);
    let mut ending = table.execute(step, node, version, &call.context.resuming(checkpoint));
    let ended = Ended { kind, step, node, command_id: call.id, manager: table.manager_of(step) };
    evidence::attach(call.state, &ended, &mut ending);
    ending
}
