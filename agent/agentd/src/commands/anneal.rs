//! `anneal.*`: commands that ironic-python-agent does not have. `anneal.cancel` is in the executor, since it is accepted
//! while another command runs.

use super::command::{Command, IpaCompatibility, Mode};
use crate::steps::StepTable;
use hwm_sdk::StepKind;

pub(super) const COMMANDS: &[Command] = &[Command::new(
    "anneal.plan_erase",
    Mode::Sync,
    IpaCompatibility::Ours("returns what a step would do to each disk; nothing is written"),
    |call| {
        let inventory = call.state.inventory();
        let table = StepTable::collect(&call.state.managers(), &inventory, StepKind::Clean);
        table.plan(&call.params["step"], &call.params["node"])
    },
)
.with(&["step", "node"], &[])];
