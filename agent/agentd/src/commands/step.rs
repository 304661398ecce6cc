//! What `clean`, `deploy` and `service` share: list the steps of a kind, and execute one.

use super::command::{Call, IpaCompatibility, type_error};
use crate::evidence::{self, Ended};
use crate::registry::Ending;
use crate::steps::{self, StepTable};
use agent_protocol::command::{ANNEAL, Addition};
use hwm_sdk::StepKind;
use serde::Deserialize;
use serde_json::{Map, Value};

pub(super) const GET: IpaCompatibility = IpaCompatibility::Differs(
    "steps may have members of ours (`idempotent`, `destructive` and others); priorities are those of our own steps",
);
pub(super) const EXECUTE: IpaCompatibility = IpaCompatibility::Differs(
    "arguments are checked against the step's schema before it runs; a failed step keeps its report in `command_result`",
);

pub(super) fn get_steps(call: &Call, kind: StepKind) -> Ending {
    let inventory = call.state.rediscover();
    Ending::done(Some(StepTable::collect(&call.state.managers(), &inventory, kind).advertised()))
}

pub(super) fn execute_step(call: &Call, kind: StepKind) -> Ending {
    let inventory = call.state.inventory();
    let table = StepTable::collect(&call.state.managers(), &inventory, kind);
    let version = call.params.get(steps::words(kind).version);
    let added = call.params.get(ANNEAL).map_or_else(|| Ok(Addition::default()), Addition::deserialize);
    let Ok(Addition { checkpoint }) = added else {
        return type_error(format!("execute_{}_step() got a wrong '{ANNEAL}'", steps::words(kind).adjective));
    };
    let (step, node) = (&call.params["step"], &call.params["node"]);
    let mut ending = table.execute(step, node, version, &call.context.resuming(checkpoint));
    let ended = Ended { kind, step, node, command_id: call.id, manager: table.manager_of(step) };
    evidence::attach(call.state, &ended, &mut ending);
    ending
}

pub(super) fn step_panicked(kind: StepKind, params: &Map<String, Value>, panic: &str) -> Ending {
    steps::panicked(kind, params.get("step").unwrap_or(&Value::Null), panic)
}
