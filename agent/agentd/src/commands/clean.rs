//! `clean.*`: steps of cleaning.

use super::command::{Command, Mode, command_panicked};
use super::step::{EXECUTE, GET, execute_step, get_steps, step_panicked};
use agent_protocol::command::ANNEAL;
use hwm_sdk::StepKind::Clean;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "clean.get_clean_steps",
        mode: Mode::Sync,
        required: &["node", "ports"],
        optional: &[],
        run: |call| get_steps(call, Clean),
        panicked: command_panicked,
        compatibility: GET,
    },
    Command {
        name: "clean.execute_clean_step",
        mode: Mode::Async,
        required: &["step", "node", "ports"],
        optional: &["clean_version", ANNEAL],
        run: |call| execute_step(call, Clean),
        panicked: |params, panic| step_panicked(Clean, params, panic),
        compatibility: EXECUTE,
    },
];
